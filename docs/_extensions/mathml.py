"""Formulas as MathML, which browsers typeset by themselves: no script, no font and no network is needed."""

import latex2mathml.converter
from docutils import nodes


def inline(writer, node):
    writer.body.append(mathml(node, "inline"))
    raise nodes.SkipNode


def display(writer, node):
    writer.body.append(f'<div class="math">{mathml(node, "block")}</div>')
    raise nodes.SkipNode


def mathml(node, kind):
    """The formula; one that cannot be converted stops the build, with the formula in the message."""
    formula = node.astext()
    try:
        return latex2mathml.converter.convert(formula, display=kind)
    except Exception as error:
        raise ValueError(f"formula {formula!r} cannot be typeset: {error}") from error


def setup(app):
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
