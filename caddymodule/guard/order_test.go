package guard_test

import (
	"strings"
	"testing"

	"github.com/stockgate/stockgate/caddymodule/internal/sitetest"
)

// TestOrderOfHandlers: a configuration in which no request comes to a gate is refused, and one that says so
// on purpose, or in which some requests come to it, is not.
func TestOrderOfHandlers(t *testing.T) {
	const (
		rules = " {\nbuyer {header.X-User-Id}\nline {json.sku}\n}\n"
		proxy = "reverse_proxy 127.0.0.1:9\n"
	)
	s := sitetest.OpenCaddyfile(t, "respond 200")
	for site, want := range map[string]string{
		"route {\nstockgate /order" + rules + "stockgate_guard\n" + proxy + "}\n":                                                     "stockgate_guard comes after a gate",
		"route {\nstockgate" + rules + "stockgate_guard\n" + proxy + "}\n":                                                            "stockgate_guard comes after a gate",
		"route {\nstockgate_check /order" + rules + "stockgate_guard\n" + proxy + "}\n":                                               "stockgate_guard comes after a gate",
		"stockgate_guard\nroute {\nstockgate_guard\nstockgate /order" + rules + proxy + "}\n":                                         "",
		"route {\nstockgate_guard\n" + proxy + "stockgate /order" + rules + "}\n":                                                     "after reverse_proxy, which answers every request",
		"route {\nstockgate_guard\n" + proxy + "stockgate" + rules + "}\n":                                                            "after reverse_proxy, which answers every request",
		"route {\nstockgate_guard\nroute {\nrespond 404\n}\nhandle /order {\nstockgate" + rules + proxy + "}\n}\n":                    "after respond, which answers every request",
		"route {\nstockgate_guard\nrespond 103\nstockgate /order" + rules + proxy + "}\n":                                             "",
		"route {\nstockgate_guard\nrespond 103\nstockgate" + rules + proxy + "}\n":                                                    "",
		"route {\nstockgate_guard\nerror 404\nstockgate_check /order" + rules + "}\n":                                                 "after error, which answers every request",
		"route {\nstockgate_guard\nreverse_proxy /other 127.0.0.1:9\nstockgate /order" + rules + proxy + "}\n":                        "",
		"route {\nstockgate_guard\nforward_auth 127.0.0.1:9 {\nuri /who\n}\nstockgate /order" + rules + proxy + "}\n":                 "",
		"stockgate_guard\nhandle /other {\n" + proxy + "}\nhandle {\nstockgate /order" + rules + proxy + "}\n":                        "",
		"stockgate_guard\ntry_files {path} /index.php?{query}\nstockgate /order" + rules + proxy:                                      "after try_files, which sends requests for /order to /index.php",
		"stockgate_guard\ntry_files {path} /index.php\nstockgate_check /order/*" + rules + proxy:                                      "after try_files, which sends requests for /order/* to /index.php",
		"stockgate_guard\ntry_files {path} /index.php\nstockgate /index.php" + rules + proxy:                                          "",
		"stockgate_guard\ntry_files {path} /index.php\nstockgate /buy.php" + rules + proxy:                                            "",
		"stockgate_guard\ntry_files {path} {path}/ /index.php\nstockgate /order" + rules + proxy:                                      "",
		"stockgate_guard\nhandle /order {\ntry_files {path} /index.php\nstockgate" + rules + proxy + "}\n":                            "",
		"stockgate_guard\n@page {\nnot path /order\nfile /index.html\n}\nrewrite @page /index.html\nstockgate /order" + rules + proxy: "",
		"route {\nstockgate_guard\nstockgate /order" + rules + "try_files {path} /index.php\n" + proxy + "}\n":                        "",
		"route {\nstockgate_guard\nrewrite * /shop.php?{query}\nstockgate /order" + rules + proxy + "}\n":                             "after rewrite, which sends requests for /order to /shop.php",
		"route {\nstockgate_guard\nhandle {\n" + proxy + "}\nstockgate /order" + rules + "}\n":                                        "after reverse_proxy, which answers every request",
		"route {\nstockgate_guard\nhandle /a {\nrespond a\n}\nhandle {\nheader X-A b\n}\nstockgate /order" + rules + proxy + "}\n":    "",
		"stockgate_guard\nrewrite /order /shop\nstockgate /shop" + rules + proxy:                                                      "",
	} {
		err := s.LoadCaddyfile(site)
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", site, err, want)
		}
		if strings.Contains(site, "{path}/") && !strings.Contains(s.Admin("GET", "/stockgate/doctor", "").Body, "unless a file or directory of that name is there") {
			t.Errorf("%s: the doctor says nothing", site)
		}
	}
}
