package command

import (
	"github.com/spf13/cobra"
)

func storeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "store <command>", Short: "Backs up and restores what `store` keeps on this machine"}
	restore := &cobra.Command{
		Use:   "restore <file> <directory> [--redis-server <program>]",
		Short: "Makes a store from a backup",
		Long: `
Makes a store from a file of 'store backup'; - is the standard input. No Caddy is
asked: run it as the user that runs Caddy, who must own the directory. That is empty
or does not exist; a store that is there is never overwritten. It is all or nothing.

Units that were sold after the backup look available in it, and selling
them again would be overselling. So every sale that was open is paused, and every
line of orders too, until you have compared the sale with the shop, or rebuilt it
from a ledger that has more. The command says what to do.`,
		Example: `  $ sudo -u caddy caddy stockgate store restore store.rdb /var/lib/stockgate`,
		RunE:    action(restoreStore, "file", "directory"),
	}
	restore.Flags().String("redis-server", "", "The redis-server or valkey-server to use: a path, or a name in PATH")
	group(cmd,
		&cobra.Command{
			Use: "backup <file>", Short: "Copies the store into a file, while it sells",
			Long: `
Writes a copy of all that 'store' keeps into a file, as it is at one moment, while
the sale goes on: all that was acknowledged before the command began is in it. The
file is written whole or not at all, for the user that runs the command alone: it
has the secrets of the store. A file that exists is not overwritten.

Where a ledger is kept, back up its database as well. See docs/redis.md#back-up-and-restore.`,
			Example: `  $ caddy stockgate store backup store.rdb`,
			RunE:    action(backupStore, "file"),
		},
		restore,
	)
	return cmd
}
