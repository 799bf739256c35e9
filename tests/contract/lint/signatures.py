# The declarations of a header at public scope: the names that they bring into millrace::, and their signatures without
# template heads, constraints, initializers and bodies. boundary.py checks both.
import re

REGION = re.compile(r"namespace millrace \{ inline namespace MILLRACE_ABI \{(?! namespace)")
CLASS = re.compile(r"(?:class|struct|union)\b")
SKIPPED = re.compile(r"(?:static_assert|friend\s+(?:class|struct)|concept|enum|namespace|using namespace|extern)\b")


def balanced_end(text, start):
    """The index after the bracket that closes the one at `start`: (, [, { or <."""
    opening = text[start]
    closing = {"(": ")", "[": "]", "{": "}", "<": ">"}[opening]
    depth, at = 0, start
    while at < len(text):
        c = text[at]
        if opening == "<" and c == "(":   # a comparison in parentheses is not a bracket
            at = balanced_end(text, at)
            continue
        depth += (c == opening) - (c == closing and not (opening == "<" and text[at - 1] in "-="))
        at += 1
        if depth == 0:
            return at
    return len(text)


def constraint_end(text, at):
    """The index after the constraint that begins at `at`: primaries that && and || connect."""
    while True:
        at += len(text[at:]) - len(text[at:].lstrip())
        if text.startswith("requires", at):   # a requires-expression
            at = balanced_end(text, text.index("{", at))
        elif text[at] == "(":
            at = balanced_end(text, at)
        else:
            at = re.compile(r"[\w:]*").match(text, at).end()
            if text[at:at + 1] == "<":
                at = balanced_end(text, at)
                at = re.compile(r"[\w:]*").match(text, at).end()
        more = re.compile(r"\s*(?:&&|\|\|)").match(text, at)
        if not more:
            return at
        at = more.end()


def without(text, word, end_of):
    """`text` without each `word` and the text after it up to end_of(text, index after the word)."""
    at = 0
    while match := re.compile(word).search(text, at):
        text = text[:match.start()] + " " + text[end_of(text, match.end()):]
        at = match.start()
    return text


def without_initializers(text):
    """`text` without default arguments and initializers. An alias keeps its type."""
    if re.match(r"\s*using\b", text):
        return text
    result, at = "", 0
    while at < len(text):
        if text[at] == "=" and not result.rstrip().endswith("operator") and text[at:at + 2] != "==":
            depth = 0
            while at < len(text) and not (depth == 0 and text[at] in ",)"):
                at = balanced_end(text, at) if text[at] in "([{" else at + 1
            continue
        result += text[at]
        at += 1
    return result


def signature(declaration):
    """A declaration without template heads, constraints, attributes, initializers and a constructor's initializers;
    empty for declarations without a signature: overloads that only produce an error, deduction guides, concepts."""
    text = declaration.strip()
    if "unavailable" in text or "diagnose::" in text or re.search(r"\bbroken_\w", text):
        return ""
    guide = text
    while match := re.match(r"template\s*(?=<)", text):
        text = text[balanced_end(text, match.end()):].strip()
        text = re.sub(r"^requires\b(.*)", lambda m: m[1][constraint_end(m[1], 0):], text, flags=re.DOTALL).strip()
    if guide != text and re.match(r"(?:explicit\s+)?\w+\s*\(.*\)\s*->", text, re.DOTALL) or SKIPPED.match(text):
        return ""
    if CLASS.match(text) and ":" not in text.replace("::", ""):
        return ""   # a declaration, or a class without bases
    text = without(text, r"\brequires\b", constraint_end)
    text = without(text, r"\b(?:__attribute__|noexcept|explicit|decltype|alignas)\s*(?=\()", balanced_end)
    text = re.sub(r"\[\[.*?\]\]", " ", text)
    text = without_initializers(text)
    if not CLASS.match(text) and "(" in text:
        text = re.sub(r"(?<!:):(?!:).*", "", text, flags=re.DOTALL)
    text = without(text, r"\btypename\s+detail::\w+(?=<)", balanced_end)   # a trait's result, not the trait
    text = re.sub(r"\bdetail::\w+(?:<[^<>]*>)?\s+auto\b", "auto", text)
    return " ".join(text.split())


def declarations(text, at, end, public=True):
    """(index, signature) of each declaration of a namespace or class between two indices."""
    start, head = at, ""

    def close():
        nonlocal start, head
        begin = start + len(text[start:at]) - len(text[start:at].lstrip())
        declared = signature(head) if public else ""
        start, head = at, ""
        return [(begin, declared)] if declared else []

    while at < end:
        c = text[at]
        label = re.compile(r"\s*(public|private|protected)\s*:(?!:)").match(text, at) if not head.strip() else None
        if label:
            public, start, at, head = label[1] == "public", label.end(), label.end(), ""
        elif c in "([":
            after = balanced_end(text, at)
            head, at = head + text[at:after], after
        elif c == "{":
            after = balanced_end(text, at)
            bare = re.sub(r"^(?:template\s*<.*?>\s*)+(?=class|struct|union)", "", head.strip(), flags=re.DOTALL)
            is_class = re.search(r"(?:^|[>)\s])(?:class|struct|union)\s+(?:\[\[.*?\]\]\s*)?[\w:]+(?:<.*>)?"
                                 r"(?:\s+final)?\s*(?::.*)?$", bare, re.DOTALL) and "(" not in re.sub(
                                     r"requires\s*\(.*\)|alignas\(\w+\)", "", bare)
            if is_class:
                inner = declarations(text, at + 1, after - 1, bool(re.search(r"\b(?:struct|union)\b", bare)))
                at = after
                if public:
                    yield from close()
                    yield from inner
                else:
                    head = ""
                follows = re.compile(r"\s*;").match(text, at)
                start = at = follows.end() if follows else at
                continue
            head, at = head + "{}", after
            if not re.compile(r"\s*[;,{.]").match(text, at):   # a body; an initializer continues after its braces
                yield from close()
        else:
            at += 1
            if c == ";":
                yield from close()
            else:
                head += c


def signatures(bare):
    """(line, signature) of each public declaration of a header without comments and strings."""
    bare = re.sub(r"^\s*#.*(?:\\\n.*)*$", lambda m: "\n" * m[0].count("\n"), bare, flags=re.MULTILINE)
    for region in REGION.finditer(bare):
        for at, text in declarations(bare, region.end(), balanced_end(bare, region.end() - 1) - 1):
            yield bare.count("\n", 0, at) + 1, text


def without_template_heads(head):
    """'template <class T> requires x struct a' -> 'struct a'."""
    lines = [line for line in head.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    result, in_requires = [], False
    for line in lines:
        in_requires = in_requires or re.match(r"\s*requires\b", line) is not None
        if not in_requires:
            result.append(line)
        in_requires = in_requires and line.rstrip().endswith(("&&", "||"))
    head = " ".join(" ".join(result).split())
    while head.startswith("template"):
        depth, at = 0, head.index("<")
        while True:
            depth += (head[at] == "<") - (head[at] == ">" and head[at - 1] not in "-=")
            at += 1
            if depth == 0:
                break
        head = head[at:].strip()
    return re.sub(r"\[\[.*?\]\]\s*|__attribute__\(\(.*?\)\)\s*|alignas\(\w+\)\s*", "", head)


def name_of(head):
    """The name that a declaration adds to its namespace; None if it adds none (a deduction guide, an operator,
    a member defined outside of its class, a forward declaration)."""
    head = without_template_heads(head)
    if not head or "operator" in head or re.match(r"(using namespace|static_assert|explicit)\b", head):
        return None
    if match := re.match(r"(?:class|struct|union|enum class|enum|concept|namespace)\s+(\w+)(.*)", head):
        return None if match[2] == ";" or match[2].startswith("<") else match[1]
    if match := re.match(r"using\s+(?:[\w:]+::)?(\w+)", head):
        return match[1]
    before = re.sub(r"\b(?:sizeof|decltype|noexcept)\(.*?\)", "", head)
    if match := re.search(r"([\w:]*?)(\w+)\s*\(", before):
        return None if "::" in match[1][-2:] or ") ->" in before and before.startswith(match[2]) else match[2]
    match = re.search(r"(\w+)(?:\[\d*\])*\s*(?:=.*|;|$)", before)
    return match and match[1]


def public_names(bare):
    """The names that a header without comments and strings declares in millrace::, and not in a namespace of it."""
    names = set()
    bare = re.sub(r"^\s*#.*(?:\\\n.*)*$", "", bare, flags=re.MULTILINE)
    for region in REGION.finditer(bare):
        start, at, depth, end = region.end(), region.end(), 0, balanced_end(bare, region.end() - 1) - 1
        while at < end:
            c = bare[at]
            depth += (c == "(") - (c == ")")
            if c == "{" and depth == 0:
                head, at = bare[start:at], balanced_end(bare, at)
                if not re.search(r"\bnamespace \w+\s*$", head):
                    names.add(name_of(head))
                after = re.match(r"\s*;", bare[at:])
                start = at = at + (after.end() if after else 0)
                continue
            at += 1
            if c == ";" and depth == 0:
                names.add(name_of(bare[start:at]))
                start = at
    return names - {None}
