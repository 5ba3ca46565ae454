/* Passes over events. */
#include "vectors.h"
#include "generated.h"
#include "program.h"
