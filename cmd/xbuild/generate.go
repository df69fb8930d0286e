package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const caddyModule = "github.com/caddyserver/caddy/v2"

// xcaddyArgs are the xcaddy arguments for the same build.
func (c config) xcaddyArgs(output string) []string {
	args := []string{"build", c.CaddyVersion, "--output", output}
	for _, d := range c.Dependencies {
		with := d.Module
		if d.Version != "" && d.Replace == "" {
			with += "@" + d.Version
		}
		if d.Replace != "" {
			with += "=" + d.Replace
		}
		args = append(args, "--with", with)
	}
	return args
}

// mainFile is the program to build: Caddy and each module.
func (c config) mainFile() string {
	var b strings.Builder
	fmt.Fprintf(&b, "package main\n\nimport (\n\tcaddycmd %q\n\n\t_ %q\n", caddyModule+"/cmd", caddyModule+"/modules/standard")
	for _, d := range c.Dependencies {
		fmt.Fprintf(&b, "\t_ %q\n", d.Module)
	}
	b.WriteString(")\n\nfunc main() { caddycmd.Main() }\n")
	return b.String()
}

// requirements splits the dependencies into edits of go.mod, where no server needs to
// be asked, and arguments of "go get" for the rest.
func (c config) requirements() (edits, get []string) {
	all := slices.Concat([]dependency{{Module: caddyModule, Version: c.CaddyVersion}}, c.Dependencies)
	for _, d := range all {
		switch {
		case d.Replace != "":
			edits = append(edits,
				"-require="+d.Module+"@"+placeholder(d.Module),
				"-replace="+d.Module+"="+d.Replace)
		case releases.MatchString(d.Version):
			edits = append(edits, "-require="+d.Module+"@"+d.Version)
		default:
			get = append(get, d.Module+"@"+d.Version)
		}
	}
	return edits, get
}

var majorSuffix = regexp.MustCompile(`(?:/|^gopkg\.in/.*\.)(v[0-9]+)$`)

// placeholder is a version that a replaced module may be required with: its
// major version must match the module's path.
func placeholder(module string) string {
	if m := majorSuffix.FindStringSubmatch(module); m != nil {
		return m[1] + ".0.0"
	}
	return "v0.0.0"
}
