"""What a browser would see of a page of HTML."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """What a browser would see: tags, attributes, text, tables."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.open, self.rows = [], [], [], []
        self.heads = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, name, attributes):
        self.tags.append((name, dict(attributes)))
        if name not in ("meta", "img", "br", "input"):
            self.open.append(name)
        if name == "tr":
            if "thead" in self.open:
                self.heads.add(len(self.rows))
            self.rows.append([])
        if name in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        if "script" not in self.open:
            self.words.append(data)
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data

    @property
    def text(self):
        return "".join(self.words)

    @property
    def kinds_of_script(self):
        return [attributes.get("type") for name, attributes in self.tags if name == "script"]
