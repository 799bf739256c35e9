// The macros that libjpeg's headers define, pinned: a macro that reappears here would break a user's enum.
#define TRUE 7
#define DCTSIZE mine
#include <millrace/image/jpeg/libjpeg/libjpeg.hpp>

#if TRUE != 7
#error "a macro that was there before has changed"
#endif

#undef TRUE
#undef DCTSIZE

#include <doctest/doctest.h>

#include <type_traits>

namespace {

enum names_of_others {
  TRUE, FALSE, LOCAL, GLOBAL, EXTERN, METHODDEF, JMETHOD, JPP, FAR, MAKESTMT, DCTSIZE, DCTSIZE2, MAX_COMPONENTS,
  WITH_SIMD, ERREXIT, ERREXIT1, ERREXIT2, ERREXIT3, ERREXIT4, ERREXIT6, ERREXITS, WARNMS, WARNMS1, WARNMS2, TRACEMS,
  TRACEMS1, TRACEMS2, TRACEMS3, TRACEMS4, TRACEMS5, TRACEMS8, TRACEMSS, BITS_IN_JSAMPLE, CENTERJSAMPLE, MAXJSAMPLE,
  GETJOCTET, GETJSAMPLE, C_ARITH_CODING_SUPPORTED, D_ARITH_CODING_SUPPORTED, C_MAX_BLOCKS_IN_MCU, D_MAX_BLOCKS_IN_MCU,
  MAX_COMPS_IN_SCAN, MAX_SAMP_FACTOR, MEM_SRCDST_SUPPORTED, NUM_ARITH_TBLS, NUM_HUFF_TBLS, NUM_QUANT_TBLS,
  jpeg_common_fields, XMD_H, count_of_names
};

}  // namespace

// Other libraries may declare types of these names differently.
using INT16 = char[16];
using INT32 = char[32];
using UINT8 = char[8];
using UINT16 = char[17];
using boolean = char[1];

TEST_CASE("libjpeg's headers define only names with their own prefix") {
  CHECK(count_of_names == 49);
  CHECK(sizeof(INT32) == 32);
  CHECK(std::is_same_v<decltype(jpeg_decompress_struct::arith_code), int>);
  CHECK(JPEG_LIB_VERSION >= 62);
}
