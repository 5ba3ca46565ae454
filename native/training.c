/* Training passes of one instruction set: neurons through time, and products and convolutions of their spikes. Python binds them in
   models/fast; nothing of this is in a compiled program. */
#define FOR_TRAINING
#include "vectors.h"
#include "generated.h"
#include "program.h"
#include "training.h"
#include "training_products.h"
#include "training_neurons.h"
#include "training_convolutions.h"
