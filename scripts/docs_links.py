"""Points the links of docs that leave it at the repository: the site has docs alone."""
import re

REPOSITORY = "https://github.com/stockgate/stockgate/blob/main/"


def on_page_markdown(markdown, **_):
    return re.sub(r"\]\(\.\./", "](" + REPOSITORY, markdown)
