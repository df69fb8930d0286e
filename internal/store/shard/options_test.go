package shard_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/store/shard"
	"github.com/stockgate/stockgate/lua"
)

func TestOptionsValidate(t *testing.T) {
	type options = shard.Options
	one := []string{"127.0.0.1:6379"}
	tests := map[string]struct {
		options options
		want    string // part of the error; empty: no error
	}{
		"an address":          {options{Addresses: one}, ""},
		"a name":              {options{Addresses: []string{"redis:6379"}}, ""},
		"IPv6":                {options{Addresses: []string{"[::1]:6379"}}, ""},
		"a URL":               {options{Addresses: []string{"redis://me:hunter2@redis:6379/3"}}, ""},
		"a user of a URL":     {options{Addresses: []string{"redis://me@redis:6379"}, Password: "hunter2"}, ""},
		"a URL with TLS":      {options{Addresses: []string{"rediss://redis:6379"}}, ""},
		"sentinels":           {options{Addresses: []string{"a:1", "b:1", "c:1"}, Sentinel: "main"}, ""},
		"a cluster":           {options{Addresses: []string{"a:1", "b:1"}, Cluster: true}, ""},
		"acks":                {options{Addresses: one, ReplicaAcks: 1}, ""},
		"the longest timeout": {options{Addresses: one, Timeout: time.Minute}, ""},

		"nothing":               {options{}, "no address given; write `redis 127.0.0.1:6379`"},
		"two ports":             {options{Addresses: []string{"redis:1:2"}}, `"redis:1:2" is not host:port`},
		"a short timeout":       {options{Addresses: one, Timeout: time.Millisecond}, "timeout 1ms is outside 10ms to 1m"},
		"a negative timeout":    {options{Addresses: one, Timeout: -time.Second}, "outside"},
		"a long timeout":        {options{Addresses: one, Timeout: time.Hour}, "outside"},
		"several":               {options{Addresses: []string{"a:1", "b:1"}}, "sentinel <master>` or `cluster`"},
		"sentinel and cluster":  {options{Addresses: one, Sentinel: "main", Cluster: true}, "exclude each other"},
		"negative acks":         {options{Addresses: one, ReplicaAcks: -1}, "must not be negative"},
		"acks in a cluster":     {options{Addresses: one, ReplicaAcks: 1, Cluster: true}, "not possible with cluster"},
		"acks wait too long":    {options{Addresses: one, ReplicaAcks: 1, ReplicaAcksWait: time.Second}, "less than timeout 500ms"},
		"acks wait for ever":    {options{Addresses: one, ReplicaAcks: 1, ReplicaAcksWait: time.Microsecond}, "at least 1ms"},
		"acks wait negatively":  {options{Addresses: one, ReplicaAcks: 1, ReplicaAcksWait: -time.Second}, "at least 1ms"},
		"a brace in the prefix": {options{Addresses: one, Prefix: "a{b"}, `key_prefix "a{b"`},
		"a space in the prefix": {options{Addresses: one, Prefix: "a b"}, "key_prefix"},
		"a URL among others":    {options{Addresses: []string{"redis://a:1", "b:1"}, Cluster: true}, "a URL stands alone"},
		"a bad URL":             {options{Addresses: []string{"redis://me:hunter2@:x/y"}}, "the URL cannot be read"},
		"a # in the password":   {options{Addresses: []string{"redis://:hunter2#x@redis:6379"}}, "# as %23"},
		"a fragment":            {options{Addresses: []string{"redis://redis:6379/0#x"}}, "# as %23"},
		"no scheme":             {options{Addresses: []string{"me:hunter2@redis:6379"}}, "is a URL: write redis://user:password@host:6379/0"},
		"no scheme, no port":    {options{Addresses: []string{"me:hunter2@redis"}}, "is a URL"},
		"another scheme":        {options{Addresses: []string{"http://a:1"}}, "the URL cannot be read"},
		"two passwords":         {options{Addresses: []string{"redis://:hunter2@redis"}, Password: "hunter2"}, "write it in one place"},
		"two users":             {options{Addresses: []string{"redis://me@redis"}, Username: "you"}, "write it in one place"},
		"a unix socket":         {options{Addresses: []string{"unix://redis.sock"}}, "the URL cannot be read"},
		"a cluster's database":  {options{Addresses: []string{"redis://a:1/2"}, Cluster: true}, "only database 0"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := test.options.Validate()
			switch {
			case test.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			case err != nil && strings.Contains(err.Error(), "hunter2"):
				t.Errorf("the error %v contains the password", err)
			}
			if s, err := reservation.Open(test.options); (err == nil) != (test.want == "") {
				t.Errorf("open gives %v", err)
			} else if err == nil {
				s.Close()
			}
		})
	}
}

func TestOptionsDefaults(t *testing.T) {
	o := shard.Options{Addresses: []string{"a:1"}, ReplicaAcks: 1}
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	if o.Timeout != shard.DefaultTimeout || o.Prefix != shard.DefaultPrefix || o.ReplicaAcksWait != 50*time.Millisecond {
		t.Errorf("the defaults are %+v", o)
	}
	s, err := shard.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Options.Scripts != lua.Redis() {
		t.Error("these are not the scripts for Redis")
	}
}
