package app

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/stockgate/stockgate/caddymodule/app/journals"
	"github.com/stockgate/stockgate/caddymodule/internal/directive"
)

// UnmarshalCaddyfile reads the global option. Syntax:
//
//	stockgate {
//		redis <address...> | embedded {
//			address      <address...>
//			sentinel     <master> {
//				username <name>
//				password <password>
//			}
//			cluster
//			username     <name>
//			password     <password>
//			tls {
//				ca          <file...>
//				certificate <file> <key file>
//				server_name <name>
//			}
//			timeout      <duration>
//			replica_acks <number> [<duration>]
//			fence <duration> | off
//			at_risk      any | <units> | <duration>
//		}
//		store <directory> {
//			redis_server <program>
//			memory       <size>
//			timeout      <duration>
//		}
//		rate_redis <address...> {
//			… as in redis, without replica_acks and at_risk
//		}
//		key_prefix <prefix>
//		token {
//			key      auto | ed25519 <pem> | hmac <secret>
//			issuer   <name>
//			audience <name>
//			margin   <duration>
//		}
//		list <name> file <path>
//		list <name> redis
//		identities {
//			country    <letters>
//			buyer      name|email
//			email_tags kept|ignored
//		}
//		messages [<file>] {
//			languages <tag...>
//		}
//		ledger sqlite <file> | postgres <dsn> | mysql <dsn> | off
//		journal {
//			keep <duration>
//			most <number>
//		}
//		outbox <url> {
//			secret  <secret>
//			batch   <number>
//			timeout <duration>
//			sales   <sale...>
//			kinds   <kind...>
//		}
//		mirror <url> {
//			sales <sale...>
//			set   <key> available|taken|confirmed|stock
//			hset  <key> <field> available|taken|confirmed|stock
//		}
//		notify <url> {
//			form    slack|webhook
//			secret  <secret>
//			page    <url>
//			timeout <duration>
//			only    <kind...>
//			except  <kind...>
//		}
//	}
//
// The addresses of redis and rate_redis are in their line or in their block. Of several
// keys the first signs and all verify; all secrets of outbox and notify sign. list may be given
// more than once, each name once.
func (a *App) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the option's name
	if d.NextArg() {
		return d.Errf("stockgate takes no arguments here, found %q: write `stockgate { … }`", d.Val())
	}
	at := *d // where stockgate is, for errors about all of it
	err := directive.ReadBlock(d, map[string]directive.Option{
		"redis":      {Usage: "redis <address...> | embedded", Read: readRedis(&a.Redis, "redis")},
		"store":      {Usage: "store <directory>", Read: a.readStore},
		"rate_redis": {Usage: "rate_redis <address...>", Read: readRedis(&a.RateRedis, "rate_redis")},
		"key_prefix": {Usage: "key_prefix <prefix>", Read: directive.Text(&a.KeyPrefix)},
		"token":      {Usage: "token { … }", Read: a.Token.readCaddyfile},
		"ledger":     {Usage: "ledger sqlite <file> | postgres <dsn> | mysql <dsn> | off", Read: journals.ReadLedger(&a.LedgerRaw)},
		"journal":    {Usage: "journal { … }", Read: a.Journal.ReadCaddyfile},
		"outbox":     {Usage: "outbox <url> { … }", Read: journals.ReadOutbox(&a.Outbox)},
		"mirror":     {Usage: "mirror <url> { … }", Read: journals.ReadMirror(&a.MirrorRaw)},
		"messages":   {Usage: directive.MessagesUsage, Read: directive.ReadMessages(&a.Messages)},
		"notify":     {Usage: "notify <url> { … }", Read: a.readNotify},
		"identities": {Usage: "identities { … }", Read: a.readIdentities},
		"list":       {Usage: "list <name> file <path>|redis", Read: a.readList, List: true},
	})
	if err == nil && a.Store != nil && a.Redis != nil {
		return at.WrapErr(errStockTwice)
	}
	if err == nil {
		err = directive.WrapOption(at, a.Messages.Check())
	}
	return err
}

func (t *Token) readCaddyfile(d *caddyfile.Dispenser, usage string) error {
	if _, err := directive.Arguments(d, usage, 0, 0); err != nil {
		return err
	}
	return directive.ReadBlock(d, map[string]directive.Option{
		"key":      {Usage: "key auto | ed25519 <pem> | hmac <secret>", Read: t.readKey, List: true},
		"issuer":   {Usage: "issuer <name>", Read: directive.Text(&t.Issuer)},
		"audience": {Usage: "audience <name>", Read: directive.Text(&t.Audience)},
		"margin":   {Usage: "margin <duration>", Read: directive.Duration(&t.Margin)},
	})
}

func (t *Token) readKey(d *caddyfile.Dispenser, usage string) error {
	args, err := directive.Arguments(d, usage, 1, 2)
	if err != nil {
		return err
	}
	key := TokenKey{Kind: args[0]}
	switch material := args[1:]; key.Kind {
	case "auto":
		if len(material) > 0 {
			return d.Errf("key auto is made by Stockgate itself: write nothing after it")
		}
	case "ed25519", "hmac":
		if len(material) == 0 {
			return d.Errf("key %s has no material: write `%s`", key.Kind, usage)
		}
		key.Material = material[0]
	default:
		// The word may be a secret without its kind: the error does not repeat it.
		return d.Errf("there is no such kind of key: write `%s`", usage)
	}
	t.Keys = append(t.Keys, key)
	return nil
}
