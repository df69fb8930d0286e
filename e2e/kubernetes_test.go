package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"go.yaml.in/yaml/v4"

	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/token"
)

// manifest is what the tests read of one.
type manifest struct {
	Kind     string
	Metadata struct {
		Name        string
		Annotations map[string]string
	}
	Data map[string]string
	Spec struct {
		Strategy struct {
			RollingUpdate struct{ MaxUnavailable *int }
		}
		Selector map[string]any
		Ports    []struct{ TargetPort any }
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				TerminationGracePeriodSeconds int
				Containers                    []struct {
					Ports     []struct{ ContainerPort int }
					Lifecycle struct {
						PreStop struct{ Sleep struct{ Seconds int } }
					}
					StartupProbe, ReadinessProbe, LivenessProbe struct {
						HTTPGet struct{ Path, Port string }
					}
				}
			}
		}
	}
}

// manifests reads examples/kubernetes, by kind and name.
func manifests(t *testing.T) map[string]manifest {
	t.Helper()
	all := make(map[string]manifest)
	file, err := os.Open("../examples/kubernetes/stockgate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	in := yaml.NewDecoder(file)
	for {
		var tree any
		err := in.Decode(&tree)
		if errors.Is(err, io.EOF) {
			return all
		}
		text, jsonErr := json.Marshal(tree)
		var m manifest
		if err = errors.Join(err, jsonErr, json.Unmarshal(text, &m)); err != nil {
			t.Fatalf("manifest %d: %v", len(all), err)
		}
		all[m.Kind+" "+m.Metadata.Name] = m
	}
}

// pods start processes with the Caddyfile of the ConfigMap, with one Redis, key and shop.
type pods struct {
	t         *testing.T
	caddyfile string
	secrets   string
}

func newPods(t *testing.T, redis, shop string) *pods {
	t.Helper()
	p := &pods{t: t, secrets: t.TempDir()}
	_, key, err := token.GenerateEd25519()
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"token.pem": string(key), "login-secret": loginSecret} {
		if err := os.WriteFile(filepath.Join(p.secrets, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.caddyfile = changed(t, manifests(t)["ConfigMap stockgate"].Data["Caddyfile"], "redis stockgate-redis:6379", "redis "+redisAt(redis), "shop:3000", shop,
		"/etc/stockgate/", p.secrets+"/", "grace_period 60s", "grace_period 10m", "wait 25s", "wait 5m", "forward_timeout 20s", "hold_for 10m", "at_once 20", "at_once 1")
	return p
}

func (p *pods) start() *edge {
	p.t.Helper()
	e := newEdge(p.t, "")
	_, port, _ := net.SplitHostPort(e.addr)
	own := fmt.Sprintf("{\n\tadmin unix/%s\n\tstorage file_system %s\n\tpersist_config off\n", e.admin, e.storage)
	text := changed(p.t, own+strings.TrimPrefix(p.caddyfile, "{\n"), "http://:8080 {", "http://:"+port+" {\n\tbind 127.0.0.1")
	file := filepath.Join(e.dir, "Caddyfile")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	e.startFile(file)
	return e
}

// The manifests fit together, and their times are in the right order.
func TestManifests(t *testing.T) {
	t.Parallel()
	all := manifests(t)
	caddyfile := all["ConfigMap stockgate"].Data["Caddyfile"]
	_, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(caddyfile), nil)
	if err != nil || len(warnings) > 0 {
		t.Errorf("the Caddyfile: %v %v", warnings, err)
	}
	deployment := all["Deployment stockgate"].Spec
	pod, container := deployment.Template.Spec, deployment.Template.Spec.Containers[0]
	order := spanIn(t, caddyfile, "\twait ") + spanIn(t, caddyfile, "\tforward_timeout ")
	grace := spanIn(t, caddyfile, "\tgrace_period ")
	const outcomes = 10 * time.Second // docs/redis.md, Reload and shutdown
	if grace <= order {
		t.Errorf("grace_period is %v, an order may take %v", grace, order)
	}
	if least := time.Duration(container.Lifecycle.PreStop.Sleep.Seconds)*time.Second + grace + outcomes; time.Duration(pod.TerminationGracePeriodSeconds)*time.Second <= least {
		t.Errorf("a pod is killed after %d s, and needs %v", pod.TerminationGracePeriodSeconds, least)
	}
	if read := all["Ingress stockgate"].Metadata.Annotations["nginx.ingress.kubernetes.io/proxy-read-timeout"]; spanIn(t, "read "+read+"s", "read ") <= order {
		t.Errorf("the ingress waits for %s s, an order may take %v", read, order)
	}
	if at := fmt.Sprintf("http://:%d {", container.Ports[0].ContainerPort); !strings.Contains(caddyfile, at) {
		t.Errorf("the Caddyfile has no %q", at)
	}
	labels := fmt.Sprint(deployment.Template.Metadata.Labels)
	for _, name := range []string{"Deployment stockgate", "PodDisruptionBudget stockgate"} {
		if match := fmt.Sprint(all[name].Spec.Selector["matchLabels"]); match != labels {
			t.Errorf("%s selects %s, the pods have %s", name, match, labels)
		}
	}
	if service := fmt.Sprint(all["Service stockgate"].Spec.Selector); service != labels {
		t.Errorf("the Service selects %s, the pods have %s", service, labels)
	}
	if n := deployment.Strategy.RollingUpdate.MaxUnavailable; n == nil || *n != 0 {
		t.Errorf("an old pod may go before a new one sells")
	}
	redis := regexp.MustCompile(`redis (\S+):6379`).FindStringSubmatch(caddyfile)
	if redis == nil || all["Service "+redis[1]].Kind == "" || all["StatefulSet "+redis[1]].Kind == "" {
		t.Errorf("there is no Redis %v", redis)
	}
}

// The probes say that a pod sells, and only readiness follows Redis.
func TestProbesOfManifests(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	e := newPods(t, redis.Addr(), serve(t, new(recorder))).start()
	container := manifests(t)["Deployment stockgate"].Spec.Template.Spec.Containers[0]
	status := func(path string) int {
		status, _, _ := e.get(path)
		return status
	}
	eventually(t, "the pod has started", func() bool { return status(container.StartupProbe.HTTPGet.Path) == http.StatusOK })
	eventually(t, "the pod is ready", func() bool { return status(container.ReadinessProbe.HTTPGet.Path) == http.StatusOK })
	redis.Stop()
	eventually(t, "the pod is not ready", func() bool { return status(container.ReadinessProbe.HTTPGet.Path) == http.StatusServiceUnavailable })
	if n := status(container.LivenessProbe.HTTPGet.Path); n != http.StatusOK {
		t.Errorf("without Redis the pod would be restarted: %d", n)
	}
	redis.Restart()
	eventually(t, "the pod is ready again", func() bool { return status(container.ReadinessProbe.HTTPGet.Path) == http.StatusOK })
}

// A pod ends while orders are at the shop and in the line. Each is answered or sent by another
// pod, once.
func TestRollingUpdate(t *testing.T) {
	t.Parallel()
	s := newSlowShop(t)
	p := newPods(t, redistest.Start(t).Addr(), serve(t, s))
	old, other := p.start(), p.start()
	old.sell("flash", `  - {sku: "7", stock: 10}`)
	other.untilSelling("flash")

	atShop := old.goBuy(signed("at-shop", "7"))
	await(t, "the shop has the first order", s.working)
	open := old.goBuy(signed("open", "7"))
	other.untilExpected("flash", 8, 2, 0, 0)
	told := signed("told", "7")
	told.header.Set("Prefer", "respond-async")
	place := old.mustBuy(told, http.StatusAccepted, "").header.Get("Location")
	elsewhere := other.goBuy(signed("elsewhere", "7"))
	other.untilExpected("flash", 6, 4, 0, 0)

	next := p.start() // maxSurge: before the old one goes
	next.untilSelling("flash")
	if err := old.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the old pod takes no more requests", func() bool {
		conn, err := net.Dial("tcp", old.addr)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	later := next.goBuy(signed("later", "7"))
	other.untilExpected("flash", 5, 5, 0, 0)
	s.answer <- http.StatusCreated
	for range 4 {
		await(t, "the shop has the next order", s.working)
		s.answer <- http.StatusCreated
	}
	for name, done := range map[string]<-chan result{"at the shop": atShop, "in the line": open, "at the other pod": elsewhere, "at the next pod": later} {
		if r := await(t, "an answer", done); r.status != http.StatusCreated {
			t.Errorf("the order %s: %v", name, r)
		}
	}
	await(t, "the old pod ends", old.gone)
	if code := old.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the old pod ends with %d", code)
	}
	eventually(t, "the shop's answer at the place", func() bool {
		status, _, _ := next.get(place)
		return status == http.StatusCreated
	})
	other.untilExpected("flash", 5, 0, 0, 5)
	var ids []string
	for _, r := range s.requests() {
		ids = append(ids, r.header.Get(token.Header))
	}
	slices.Sort(ids)
	if n := len(slices.Compact(slices.Clone(ids))); n != 5 || len(ids) != 5 {
		t.Errorf("the shop got %d requests with %d tokens for 5 orders", len(ids), n)
	}
}
