package dashboard

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// dist is what web/build.mjs makes of web/src.
//
//go:embed web/dist
var dist embed.FS

// file is a file of the page.
type file struct {
	body        []byte
	contentType string
	tag         string
}

// files are the files of the page by path; the page itself has none. They are read at the first request: most processes
// show no page.
var files = sync.OnceValue(readFiles)

func readFiles() map[string]*file {
	const dir = "web/dist"
	entries, err := dist.ReadDir(dir)
	if err != nil {
		panic(err)
	}
	all := make(map[string]*file)
	for _, entry := range entries {
		body, err := dist.ReadFile(dir + "/" + entry.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(body)
		f := &file{body: body, contentType: typeOf(entry.Name()), tag: `"` + hex.EncodeToString(sum[:8]) + `"`}
		all[strings.TrimSuffix(entry.Name(), "index.html")] = f
	}
	return all
}

func typeOf(name string) string {
	if path.Ext(name) == ".map" {
		return "application/json"
	}
	return mime.TypeByExtension(path.Ext(name))
}

// serveFile serves a file of the page. Under a prefix without a slash at its end, the page
// would not find its files: such a request is redirected.
func serveFile(w http.ResponseWriter, r *http.Request, name string, f *file) error {
	if name == "" {
		asked, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request)
		if ok && !strings.HasSuffix(asked.URL.Path, "/") && asked.URL.Path != "" {
			w.Header().Set("Location", "./"+path.Base(asked.URL.EscapedPath())+"/")
			w.WriteHeader(http.StatusPermanentRedirect)
			return nil
		}
	}
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("Etag", f.tag)
	if r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Type", f.contentType)
	h.Set("Content-Length", strconv.Itoa(len(f.body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(f.body)
	}
	return nil
}
