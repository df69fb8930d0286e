"""Makes of docs what a site needs beside its pages: links that leave docs lead to the repository, and addresses
that have moved lead on, by the table `moved` of mkdocs.yml."""
import json
import os
import posixpath
import re
import shutil

REPOSITORY = "https://github.com/stockgate/stockgate/blob/main/"

# By the anchor of the address that was opened: where it is now. Without one, or with an unknown one, a page that
# is gone leads to its successor, and one that is there stays.
FOLLOW = """<script>
(function () {
  var moved = %s, page = %s, at = decodeURIComponent(location.hash.slice(1))
  if (Object.hasOwn(moved, at) && !document.getElementById(at)) location.replace(moved[at])
  else if (page) location.replace(page)
})()
</script>"""

GONE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex">
<link rel="canonical" href="{page}">
<title>Moved</title>
{script}
<noscript><meta http-equiv="refresh" content="0; url={page}"></noscript>
<p>This page has moved: <a href="{page}">go on</a>.</p>
</html>
"""


def on_page_markdown(markdown, **_):
    return re.sub(r"\]\(\.\./", "](" + REPOSITORY, markdown)


def address(link, root):
    """The address of a page, and of a heading on it; root is the way to the root of the site."""
    if link.startswith("../"):
        return REPOSITORY + link.removeprefix("../")
    page, _, anchor = link.partition("#")
    path = "" if page == "README.md" else page.removesuffix(".md") + "/"
    return root + path + ("#" + anchor if anchor else "")


def moves(config):
    """What has moved, by page: anchors ("" is the page itself) and where they are now, seen from that page."""
    pages = {}
    for line in config["extra"]["moved"].splitlines():
        old, new = line.split()
        page, _, anchor = old.partition("#")
        pages.setdefault(page, {})[anchor] = address(new, "" if page == "README.md" else "../")
    return pages


def script(moved, page):
    return FOLLOW % (json.dumps(moved), json.dumps(page))


def on_page_content(html, page, config, **_):
    moved = moves(config).get(page.file.src_uri)
    return html + script(moved, None) if moved else html


# What theme_extra.js of the theme does for these pages.
TABLES = """for (const table of document.querySelectorAll('.rst-content table')) table.classList.add('docutils')
"""


def complete(scripts):
    """Adds the scripts that Debian's mkdocs 1.4 names in its pages and does not have: without jQuery, phones have
    no menu."""
    jquery, extra = posixpath.join(scripts, "jquery-3.6.0.min.js"), posixpath.join(scripts, "theme_extra.js")
    if not os.path.exists(jquery) and os.path.exists(posixpath.join(scripts, "jquery-2.1.1.min.js")):
        shutil.copyfile(posixpath.join(scripts, "jquery-2.1.1.min.js"), jquery)
    if not os.path.exists(extra):
        with open(extra, "w", encoding="utf-8") as file:
            file.write(TABLES)


def on_post_build(config, **_):
    complete(posixpath.join(config["site_dir"], "js"))
    for old, moved in moves(config).items():
        if os.path.exists(posixpath.join(config["docs_dir"], old)):
            continue
        page = moved.pop("", None) or next(iter(moved.values())).partition("#")[0]
        directory = posixpath.join(config["site_dir"], old.removesuffix(".md"))
        os.makedirs(directory)
        with open(posixpath.join(directory, "index.html"), "w", encoding="utf-8") as file:
            file.write(GONE.format(page=page, script=script(moved, page)))
