package demo

import (
	"io"
	"os"
	"os/exec"
	"runtime"

	"github.com/stockgate/stockgate/caddymodule/internal/terminal"
)

// openBrowser shows a page in the user's browser if the output is a terminal of a desktop. If
// that fails, the URL is there to be opened by hand.
func openBrowser(out io.Writer, url string) {
	if !terminal.Is(out) {
		return
	}
	program, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		program = "open"
	case "windows":
		program, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	default:
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return
		}
	}
	cmd := exec.Command(program, args...)
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }() // it may outlive the demo
	}
}
