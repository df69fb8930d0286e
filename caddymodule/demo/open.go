package demo

import (
	"io"
	"os"
	"os/exec"
	"runtime"
)

// openBrowser shows a page in the user's browser if the output is a terminal of a desktop. If
// that fails, the URL is there to be opened by hand.
func openBrowser(out io.Writer, url string) {
	file, ok := out.(*os.File)
	if !ok {
		return
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
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
