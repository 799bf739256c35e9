# The rule of lint.py about vector code: intrinsics, vector builtins and inline assembly of vectors exist only in simd/.
# Kernels elsewhere use the word layers (simd/words.hpp), so that they have one body for all processors.
import re

from tree import COMMENT_OR_STRING, numbered

COLUMNS = "the method for columns differs between instruction sets"
# The files outside of simd/ that may contain vector code, each with the reason. The list only gets shorter.
ALLOWED = {
    "image/color/unfused.hpp": "a barrier for the compiler; it contains no instruction",
    "image/jpeg/progressive/band_stream.hpp": "BDEP of SVE2 for integers in general registers",
    "image/resize/column_kernels_avx2.hpp": COLUMNS,
    "image/resize/column_kernels_neon.hpp": COLUMNS,
    "image/resize/tap_weights_avx2.hpp": "2 % of a resize on aarch64, where the portable code is sufficient",
}

VECTOR_CODE = re.compile(
    r"\b_mm\d*_\w+|\b__m(?:64|128|256|512)[id]?\b|\b__builtin_(?:ia32_\w+|shuffle\w*|convertvector)"
    r"|\bv[a-z0-9]+(?:_[a-z0-9]+)*_[supf](?:8|16|32|64)(?:_x\d)?\s*\(|\b(?:u?int|float|poly)\d+x\d+(?:x\d)?_t\b"
    r"|<(?:\w*mmintrin|x86intrin|arm_neon|arm_sve)\.h>")
# Constraints for vector registers, or such registers in the text of the instructions.
VECTOR_OPERAND = re.compile(r'"[=+&]*[xvw]"\s*\(|%%[xyz]mm\d|\b[zv]\d+\.\w')


def vector_code(text):
    """The places of vector code in a header: (line, code)."""
    without = COMMENT_OR_STRING.sub(lambda m: "\n" * m[0].count("\n"), text)
    for _, number, line in numbered({"": without}):
        if match := VECTOR_CODE.search(line):
            yield number, match[0].rstrip(" (")
    for match in re.finditer(r"\basm(?: volatile)?\((.*?)\);", text, re.DOTALL):
        if VECTOR_OPERAND.search(match[1]):
            yield text.count("\n", 0, match.start()) + 1, "asm"


def vectors(tree):
    """Vector code is in simd/, or in a file of ALLOWED."""
    prefix = "include/millrace/"
    texts = {path.removeprefix(prefix): text for path, text in tree.named(".hpp", ".inl", ".cuh", ".inc").items()
             if path.startswith(prefix)}
    for path, text in texts.items():
        if path.startswith("simd/"):
            continue
        places = list(vector_code(text))
        if path in ALLOWED and not places:
            yield path, 1, "it has no vector code: remove it from ALLOWED in vectors.py"
        for number, code in places:
            if path not in ALLOWED:
                yield path, number, f"{code}: write an operation of the word layers in simd/, and use it here"
    for path in ALLOWED:
        if "simd/words.hpp" in texts and path not in texts:
            yield path, 1, "it does not exist: remove it from ALLOWED in vectors.py"
