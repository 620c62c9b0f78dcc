"""Write the page on file formats, and the JSON Schemas that it links to.

Usage: python docs/formats.py
"""

import json
from pathlib import Path

import hindsched as hs

REFERENCE = Path(__file__).parent / "reference"


def main() -> None:
    for path, text in files().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def files() -> dict[Path, str]:
    """The page and the schemas by their paths."""
    found = {}
    parts = [
        "# File formats\n\nAn instance is a JSON object; `hindsched schema FAMILY` prints its JSON "
        "Schema. Solutions and\ncertificates are described on [their page](certificates.md). Made "
        "from the program by `docs/formats.py`.\n"
    ]
    for family in hs.families():
        schema = hs.schema(family)
        found[REFERENCE / "schemas" / f"{family}.json"] = json.dumps(schema, indent=1) + "\n"
        rows = [
            f"| `{name}` | {'yes' if name in schema['required'] else ''} | {kind_of(field)} |"
            for name, field in schema["properties"].items()
        ]
        parts.append(
            f"## {family}\n\n[JSON Schema of {family}](schemas/{family}.json)\n\n"
            "| field | required | kind |\n|---|---|---|\n" + "\n".join(rows) + "\n"
        )
    return {REFERENCE / "formats.md": "\n".join(parts), **found}


def kind_of(field: dict) -> str:
    """What a field of a schema is, in a word or two."""
    if "$ref" in field:
        return f"an object `{field['$ref'].rsplit('/', 1)[1]}`"
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(kind_of(item) for item in field["anyOf"]))
    if field.get("type") == "array":
        return f"a list, each {kind_of(field.get('items', {}))}"
    return {"null": "nothing"}.get(field.get("type", ""), field.get("type", "anything"))


if __name__ == "__main__":
    main()
