package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stockgate/stockgate/internal/test/ports"
)

// shop is one server that says what it read.
type shop struct {
	name string
	// start starts it on a port.
	start func(l *launcher, s *shop) (*process, error)
	port  int
	// fastcgi: Caddy talks to it by php_fastcgi, from this directory.
	fastcgi string
	site    int // the port of its site at the gate
}

// allShops are the servers. Where one needs a package, scripts/need knows it.
func allShops() []*shop {
	return []*shop{
		{name: "express5", start: node("express.js", "express")},
		{name: "express4", start: node("express.js", "express4")},
		{name: "fastify", start: node("fastify.js")},
		{name: "koa", start: node("koa.js")},
		{name: "php-fpm", start: php},
		{name: "flask", start: python("flaskshop.py", "flask")},
		{name: "django", start: python("djangoshop.py", "django")},
		{name: "http.server", start: python("plainshop.py", "json")},
		{name: "rack", start: rack},
		{name: "tomcat", start: tomcat},
		{name: "nginx-lua", start: nginx},
		{name: "net/http", start: goShop(honest)},
	}
}

// shops starts those that are named, or all.
func (l *launcher) shops(ctx context.Context, names string) ([]*shop, error) {
	shops := allShops()
	if names != "" {
		want := strings.Split(names, ",")
		shops = slices.DeleteFunc(shops, func(s *shop) bool { return !slices.Contains(want, s.name) })
		if len(shops) != len(want) {
			return nil, fmt.Errorf("-shops %s: the shops are %s", names, nameList(allShops()))
		}
	}
	if slices.ContainsFunc(shops, func(s *shop) bool { return slices.Contains([]string{"express5", "express4", "fastify", "koa"}, s.name) }) {
		if err := l.npm(); err != nil {
			return nil, err
		}
	}
	for _, s := range append(shops, liar) {
		if err := l.startShop(ctx, s); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return shops, nil
}

func nameList(shops []*shop) string {
	names := make([]string, len(shops))
	for i, s := range shops {
		names[i] = s.name
	}
	return strings.Join(names, ", ")
}

func (l *launcher) startShop(ctx context.Context, s *shop) error {
	var err error
	if s.port, err = ports.Free(); err != nil {
		return err
	}
	p, err := s.start(l, s)
	if err != nil || p == nil {
		return err
	}
	return p.listens(ctx, s.port)
}

// npm installs what package-lock.json says, if it is not there yet.
func (l *launcher) npm() error {
	dir := filepath.Join(l.source, "shops/node")
	lock, err := os.Stat(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return err
	}
	if done, err := os.Stat(filepath.Join(dir, "node_modules/.package-lock.json")); err == nil && done.ModTime().After(lock.ModTime()) {
		return nil
	}
	npm := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	npm.Dir = dir
	if out, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w; install Node and npm with scripts/need node npm: %s", err, out)
	}
	return nil
}

func (s *shop) env() []string { return []string{"PORT=" + strconv.Itoa(s.port)} }

func node(script string, args ...string) func(*launcher, *shop) (*process, error) {
	return func(l *launcher, s *shop) (*process, error) {
		return l.start(s.name, s.env(), append([]string{"node", filepath.Join(l.source, "shops/node", script)}, args...)...)
	}
}

// python runs a script by the Python that has a module: Debian's packages are only in
// the system's.
func python(script, module string) func(*launcher, *shop) (*process, error) {
	return func(l *launcher, s *shop) (*process, error) {
		for _, python := range []string{"python3", "/usr/bin/python3"} {
			if exec.Command(python, "-c", "import "+module).Run() == nil {
				return l.start(s.name, append(s.env(), "PYTHONDONTWRITEBYTECODE=1"), python, filepath.Join(l.source, "shops/python", script))
			}
		}
		return nil, fmt.Errorf("python has no module %s: run scripts/need python3-%s", module, module)
	}
}

func php(l *launcher, s *shop) (*process, error) {
	found, _ := filepath.Glob("/usr/sbin/php-fpm*")
	if len(found) == 0 {
		return nil, fmt.Errorf("php-fpm is missing: run scripts/need php-fpm")
	}
	s.fastcgi = filepath.Join(l.source, "shops/php")
	config := l.path("fpm.conf")
	text := fmt.Sprintf("[global]\nerror_log = /dev/stderr\ndaemonize = no\n[www]\nlisten = %s\npm = static\npm.max_children = 3\npm.max_requests = 0\n", loopback(s.port))
	args := []string{found[len(found)-1], "-n", "-F", "-y", config, "-d", "display_errors=0", "-d", "request_order=GP"}
	if os.Geteuid() == 0 {
		text += "user = root\ngroup = root\n"
		args = append(args, "-R")
	}
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	return l.start(s.name, nil, args...)
}

func rack(l *launcher, s *shop) (*process, error) {
	return l.start(s.name, nil, "puma", "--quiet", "--environment", "production", "--threads", "4:4", "--bind", "tcp://"+loopback(s.port),
		filepath.Join(l.source, "shops/ruby/config.ru"))
}

func tomcat(l *launcher, s *shop) (*process, error) {
	var jars []string
	for _, jar := range []string{"tomcat10-embed-core", "tomcat10-annotations-api", "gson", "jackson-databind", "jackson-core", "jackson-annotations"} {
		jar = "/usr/share/java/" + jar + ".jar"
		if _, err := os.Stat(jar); err != nil {
			return nil, fmt.Errorf("%s is missing: run scripts/need tomcat10 gson jackson", jar)
		}
		jars = append(jars, jar)
	}
	path, out := strings.Join(jars, ":"), l.path("java")
	if msg, err := exec.Command("javac", "-nowarn", "-d", out, "-cp", path, filepath.Join(l.source, "shops/java/Shop.java")).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("javac: %w: %s", err, msg)
	}
	return l.start(s.name, s.env(), "java", "-Xmx256m", "-XX:+UseSerialGC", "-Djava.io.tmpdir="+l.dir, "-cp", out+":"+path, "Shop")
}

func nginx(l *launcher, s *shop) (*process, error) {
	const modules = "/usr/lib/nginx/modules/"
	if _, err := os.Stat(modules + "ngx_http_lua_module.so"); err != nil {
		return nil, fmt.Errorf("nginx's Lua is missing: run scripts/need nginx nginx-lua lua-cjson")
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;"
	}
	text := fmt.Sprintf(`load_module %[1]sndk_http_module.so;
load_module %[1]sngx_http_lua_module.so;
%[2]s
daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr crit;
events { worker_connections 512; }
http {
	access_log off;
	client_body_temp_path nginx-body; proxy_temp_path nginx-proxy; fastcgi_temp_path nginx-fastcgi; uwsgi_temp_path nginx-uwsgi; scgi_temp_path nginx-scgi;
	client_body_buffer_size 1m;
	lua_package_cpath "/usr/lib/x86_64-linux-gnu/lua/5.1/?.so;/usr/lib/aarch64-linux-gnu/lua/5.1/?.so;;";
	server {
		listen %[3]s;
		keepalive_requests 100000000;
		location / { content_by_lua_file %[4]s; }
	}
}
`, modules, user, loopback(s.port), filepath.Join(l.source, "shops/nginx/shop.lua"))
	config := l.path("nginx.conf")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	binary, err := exec.LookPath("nginx")
	if err != nil {
		binary = "/usr/sbin/nginx"
	}
	return l.start(s.name, nil, cmp.Or(binary, "nginx"), "-p", l.dir+"/", "-c", config, "-e", "stderr")
}
