#include <millrace/millrace.hpp>
using cudaStream_t = CUstream_st*;
struct item { float x; };
void example(cudaStream_t my_cuda_stream, mr::detail::batch_of<&item::x>& b) {
EXAMPLE
}
