// Contains the definitions for the headers of adapt/remote/store, except those that need libcurl. Requires
// -DMILLRACE_COMPILED.
//
//   #include <millrace/compiled/stores.hpp>      // c++ -std=c++20 -O3 -DMILLRACE_COMPILED -c
//
// stores.cpp includes this header. remote.cpp and stores.cpp are the sources of the library millrace-compiled-remote.
// stores.cpp needs libcrypto, but not libcurl.
#pragma once

#include <millrace/base/version.hpp>

#ifndef MILLRACE_COMPILED
#error "millrace/compiled/stores.hpp is for programs that are compiled with -DMILLRACE_COMPILED"
#endif

#include <millrace/adapt/remote/store/impl/credential_sources.inl>
#include <millrace/adapt/remote/store/impl/gs_access.inl>
#include <millrace/adapt/remote/store/impl/object_access.inl>
#include <millrace/adapt/remote/store/impl/object_stores.inl>
#include <millrace/adapt/remote/store/impl/s3_access.inl>
#include <millrace/adapt/remote/store/impl/security_token_service.inl>
#include <millrace/adapt/remote/store/impl/signature_v4.inl>
#include <millrace/adapt/remote/store/impl/utc_time.inl>
#include <millrace/adapt/remote/store/impl/xml_reader.inl>
