package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"github.com/stockgate/stockgate/caddymodule/operate/adminapi"
)

func keyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "key <command>", Short: "Replaces a signing key that is lost"}
	replace := &cobra.Command{
		Use: "replace --old-key <file>|--begin-anew [--force]", Short: "Replaces a lost signing key with this edge's",
		Long: `
Registers this edge's signing key in the place of the one that Redis knows, where that
is lost: 'key auto' is kept in Caddy's storage, as stockgate/token.ed25519.pem, and an
edge whose storage is gone makes a new key, which the registered one does not match.

Where there is a copy of the old key, put it back into the storage and start Caddy
again, or give it here with --old-key: limits then go on counting. Without a copy,
--begin-anew accepts what is lost with it: purchase limits and unpaid holds count from
0 again, lists in Redis match nothing until they are imported again, and idempotency
keys of before are unknown. Stock, holds and orders are not touched, and the shop
goes on accepting the tokens of the old key.

It is refused while other edges listen on this Redis, which may have the old key;
--force replaces it all the same.`,
		Example: "  $ caddy stockgate key replace --old-key backup/token.ed25519.pem\n  $ caddy stockgate key replace --begin-anew",
		RunE:    action(replaceKey),
	}
	replace.Flags().String("old-key", "", "A copy of the lost key, in PEM")
	replace.Flags().Bool("begin-anew", false, "There is no copy: limits count from 0 again")
	replace.Flags().Bool("force", false, "Although other edges listen on this Redis")
	group(cmd, replace)
	return cmd
}

func replaceKey(c *call) error {
	asked := adminapi.KeyReplacement{BeginAnew: c.flag("begin-anew"), Force: c.flag("force")}
	if file := c.text("old-key"); file != "" {
		pem, err := os.ReadFile(file)
		switch {
		case err != nil:
			return usageError{err}
		case len(bytes.TrimSpace(pem)) == 0:
			return usageError{fmt.Errorf("%s is empty: it has no key", file)}
		case asked.BeginAnew:
			return usageError{errors.New("--old-key and --begin-anew exclude each other: a copy of the old key keeps all counts")}
		}
		asked.OldKey = string(pem)
	}
	body, err := json.Marshal(asked)
	if err != nil {
		return err
	}
	var r adminapi.KeyReplaced
	if err := c.ask(http.MethodPost, "key/replace", body, &r); err != nil {
		return err
	}
	c.printf("this edge signs with %s, in the place of %s\n", r.Key, r.Lost)
	if r.SecretKept {
		c.printf("limits go on counting\n")
	} else {
		c.printf("limits, unpaid holds and lists in redis start over\n")
	}
	return nil
}
