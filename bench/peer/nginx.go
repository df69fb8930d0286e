package peer

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
)

//go:embed files/nginx.conf
var nginxConf string

//go:embed files/gate.lua
var nginxGate string

// nginxModules is where Debian has nginx's modules.
const nginxModules = "/usr/lib/nginx/modules"

func (s Spec) runNginx(ctx context.Context, u Setup) (*Running, error) {
	dir := filepath.Join(u.Dir, s.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	r := &Running{Spec: s, Addr: addr, URL: "http://" + addr}
	if u.TLS {
		r.URL = fmt.Sprintf("https://localhost:%d", portOf(addr))
		if err := certify(dir); err != nil {
			return nil, err
		}
	}
	if s.Lua {
		if err := s.luaFiles(ctx, r, u, dir); err != nil {
			r.Stop()
			return nil, err
		}
	}
	err = render(filepath.Join(dir, "nginx.conf"), nginxConf, map[string]any{
		"Root": os.Getuid() == 0, "Dir": dir, "Modules": nginxModules, "Lua": s.Lua, "Shop": u.Shop, "Rate": u.Rate, "Addr": addr, "TLS": u.TLS,
	})
	if err == nil {
		r.proc, err = Start(s.Name, u.Server, dir, s.Env, "nginx", "-p", dir, "-c", filepath.Join(dir, "nginx.conf"))
	}
	if err == nil {
		err = r.proc.Listens(addr)
	}
	if err != nil {
		r.Stop()
		return nil, err
	}
	return r, nil
}

// luaFiles writes the gate, its settings and its data, and fills its Redis.
func (s Spec) luaFiles(ctx context.Context, r *Running, u Setup, dir string) error {
	var err error
	if r.Redis, err = StartRedis("redis", u.Load, dir); err != nil {
		return err
	}
	sha, err := r.Redis.Fill(ctx, u.Items)
	if err != nil {
		return fmt.Errorf("fill redis for %s: %w", s.Name, err)
	}
	config := fmt.Sprintf("return { get = %v, in_query = %v, flag = %v, deny = %v, starts = %d, ends = %d, max = %d, redis = %d, sha = %q }\n",
		u.Method == "GET", u.InQuery, s.Flag, len(u.Denied) > 0, u.Starts.Unix(), u.Ends.Unix(), u.Limit, portOf(r.Redis.Addr), sha)
	for name, text := range map[string]string{"config.lua": config, "gate.lua": nginxGate} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	items := u.Items
	if !s.Flag {
		items = nil // Redis is asked instead
	}
	err = writeLines(filepath.Join(dir, "items.txt"), len(items), func(i int) string {
		return fmt.Sprintf("%s %d", items[i].SKU, items[i].Stock)
	})
	if err != nil {
		return err
	}
	return writeLines(filepath.Join(dir, "denied.txt"), len(u.Denied), func(i int) string { return u.Denied[i] })
}

func render(name, text string, data any) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := template.Must(template.New("").Parse(text)).Execute(f, data); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
