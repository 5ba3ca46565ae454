/* Of a convolution: sizes of inputs and outputs, its window, and how many channels each group has. */
typedef struct {
    int groups, inputs, height, width, outputs, out_height, out_width, tall, wide;
    int top, left, stride_y, stride_x, dilation_y, dilation_x;
} geometry;
