// Includes jpeglib.h, and undefines its macros whose names other code may use, such as TRUE. No other header of
// Millrace includes jpeglib.h.
//
//   #include <millrace/image/jpeg/libjpeg/libjpeg.hpp>
//   jpeg_decompress_struct d;         // defined: jpeg_*, JPEG_*, JCS_*, JPOOL_*, JMSG_*, JERR_*, JWRN_*
//   int TRUE = 1;                     // undefined: TRUE, FALSE, boolean, INT32, LOCAL, ERREXIT, DCTSIZE, ...
//
// If a macro with a common name, such as TRUE or LOCAL, was defined before the include, its definition is restored. A
// program that uses libjpeg itself must include <jpeglib.h> before Millrace; in this case no macro is undefined.
#pragma once

#include <cstddef>
#include <cstdio>   // jpeglib.h uses FILE and size_t without including their headers

#ifdef JPEGLIB_H
#include <jerror.h>
#else

#pragma push_macro("XMD_H")
#pragma push_macro("boolean")
#pragma push_macro("UINT8")
#pragma push_macro("UINT16")
#pragma push_macro("TRUE")
#pragma push_macro("FALSE")
#pragma push_macro("FAR")
#pragma push_macro("EXTERN")
#pragma push_macro("GLOBAL")
#pragma push_macro("LOCAL")
#pragma push_macro("METHODDEF")
#pragma push_macro("JMETHOD")
#pragma push_macro("JPP")
#pragma push_macro("MAKESTMT")
#pragma push_macro("DCTSIZE")
#pragma push_macro("DCTSIZE2")
#pragma push_macro("MAX_COMPONENTS")
#pragma push_macro("WITH_SIMD")
#undef XMD_H
#undef boolean
#undef UINT8
#undef UINT16
#undef EXTERN
#undef GLOBAL
#undef LOCAL
#undef METHODDEF
#undef JMETHOD
#undef JPP
#undef MAKESTMT
#undef DCTSIZE
#undef DCTSIZE2
#undef MAX_COMPONENTS
#undef WITH_SIMD
#define XMD_H                              // prevents jmorecfg.h from defining INT16 and INT32
#define boolean millrace_libjpeg_boolean   // a type cannot be undefined, so it gets a unique name
#define UINT8 millrace_libjpeg_u8
#define UINT16 millrace_libjpeg_u16

#if !__has_include(<jpeglib.h>)
#error "millrace: libjpeg is not installed: apt-get install libjpeg-dev; millrace/text.hpp does not need it"
#endif
#include <jpeglib.h>

#include <jerror.h>

#undef XMD_H
#undef boolean
#undef UINT8
#undef UINT16
#undef TRUE
#undef FALSE
#undef FAR
#undef EXTERN
#undef GLOBAL
#undef LOCAL
#undef METHODDEF
#undef JMETHOD
#undef JPP
#undef MAKESTMT
#undef DCTSIZE
#undef DCTSIZE2
#undef MAX_COMPONENTS
#undef WITH_SIMD
#pragma pop_macro("XMD_H")
#pragma pop_macro("boolean")
#pragma pop_macro("UINT8")
#pragma pop_macro("UINT16")
#pragma pop_macro("TRUE")
#pragma pop_macro("FALSE")
#pragma pop_macro("FAR")
#pragma pop_macro("EXTERN")
#pragma pop_macro("GLOBAL")
#pragma pop_macro("LOCAL")
#pragma pop_macro("METHODDEF")
#pragma pop_macro("JMETHOD")
#pragma pop_macro("JPP")
#pragma pop_macro("MAKESTMT")
#pragma pop_macro("DCTSIZE")
#pragma pop_macro("DCTSIZE2")
#pragma pop_macro("MAX_COMPONENTS")
#pragma pop_macro("WITH_SIMD")

#undef ERREXIT
#undef ERREXIT1
#undef ERREXIT2
#undef ERREXIT3
#undef ERREXIT4
#undef ERREXIT6
#undef ERREXITS
#undef WARNMS
#undef WARNMS1
#undef WARNMS2
#undef TRACEMS
#undef TRACEMS1
#undef TRACEMS2
#undef TRACEMS3
#undef TRACEMS4
#undef TRACEMS5
#undef TRACEMS8
#undef TRACEMSS
#undef BITS_IN_JSAMPLE
#undef CENTERJSAMPLE
#undef MAXJSAMPLE
#undef GETJOCTET
#undef GETJSAMPLE
#undef C_ARITH_CODING_SUPPORTED
#undef D_ARITH_CODING_SUPPORTED
#undef C_MAX_BLOCKS_IN_MCU
#undef D_MAX_BLOCKS_IN_MCU
#undef MAX_COMPS_IN_SCAN
#undef MAX_SAMP_FACTOR
#undef MEM_SRCDST_SUPPORTED
#undef NUM_ARITH_TBLS
#undef NUM_HUFF_TBLS
#undef NUM_QUANT_TBLS
#undef jpeg_common_fields

#endif
