"""What tests ask of HTML that a notebook shows: it is well formed, and nothing that a file says became a tag."""

from __future__ import annotations

from html.parser import HTMLParser


class Checked(HTMLParser):
    """Reads HTML, and keeps its tags and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
