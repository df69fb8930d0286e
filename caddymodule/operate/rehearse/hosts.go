package rehearse

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// hosts are those to which requests may go, each with its scheme. The key is what the Host
// header has, in lower case.
type hosts map[string]string

// defaultPorts are left out of a Host header.
var defaultPorts = map[string]string{"http": ":80", "https": ":443"}

// readHosts reads hosts as an operator names them: shop.test, shop.test:8443 or
// http://localhost:8080. Without a scheme it is https.
func readHosts(named []string) (hosts, error) {
	if len(named) == 0 {
		return nil, errors.New("name the host to which requests may go with --host, such as --host shop.test or --host http://localhost:8080: there is no default")
	}
	all := hosts{}
	for _, name := range named {
		text := name
		if !strings.Contains(text, "://") {
			text = "https://" + text
		}
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" || defaultPorts[u.Scheme] == "" {
			return nil, fmt.Errorf("--host %q: write a host, with its port if it has one, such as shop.test or http://localhost:8080", name)
		}
		key := plainHost(u.Scheme, u.Host)
		if scheme, twice := all[key]; twice && scheme != u.Scheme {
			return nil, fmt.Errorf("--host %q: it is named with http and with https", name)
		}
		all[key] = u.Scheme
	}
	return all, nil
}

// plainHost is a host without the port that its scheme has anyway.
func plainHost(scheme, host string) string {
	return strings.TrimSuffix(strings.ToLower(host), defaultPorts[scheme])
}

// url returns where a request with that Host header goes, if it may.
func (h hosts) url(host string) (*url.URL, error) {
	for _, scheme := range []string{"https", "http"} {
		if h[plainHost(scheme, host)] == scheme {
			return &url.URL{Scheme: scheme, Host: host}, nil
		}
	}
	return nil, fmt.Errorf("it goes to the host %q, which no --host names: there are %s", host, h)
}

// has reports whether an origin, such as https://shop.test, is one of the hosts.
func (h hosts) has(origin string) bool {
	scheme, host, _ := strings.Cut(origin, "://")
	return h[plainHost(scheme, host)] == scheme
}

// origins are the hosts with their schemes.
func (h hosts) origins() []string {
	all := []string{}
	for _, host := range slices.Sorted(maps.Keys(h)) {
		all = append(all, h[host]+"://"+host)
	}
	return all
}

func (h hosts) String() string { return strings.Join(h.origins(), ", ") }
