package selfcheck

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
)

// readLog takes the warnings that Caddy logs when it loads the configuration, as caddy validate shows them.
func (c *check) readLog() error {
	file, err := os.Open(c.path("log"))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var entry struct{ Level, Logger, Msg string }
		if json.Unmarshal(lines.Bytes(), &entry) == nil && entry.Level == "warn" && strings.HasPrefix(entry.Logger, "http.handlers.stockgate") {
			c.warn(entry.Msg)
		}
	}
	return lines.Err()
}
