"""What every refused command does."""


def refused(result, *fragments: str) -> bool:
    """Exit code 2, a message with these fragments, no traceback, and nothing printed."""
    assert result.code == 2, result
    assert "Traceback" not in result.err
    assert not result.out
    for fragment in fragments:
        assert fragment in result.err
    return True
