package chromium

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"time"
)

// Open leads the page to a URL, and waits until it has loaded.
func (b *Browser) Open(url string) {
	b.t.Helper()
	var loaded struct {
		ErrorText string `json:"errorText"`
	}
	b.do("Page.navigate", map[string]any{"url": url}, &loaded)
	if loaded.ErrorText != "" {
		b.t.Fatalf("%s: %s", url, loaded.ErrorText)
	}
	b.Until(`document.readyState === 'complete' && location.href !== 'about:blank'`)
}

// AcceptAnyCertificate lets the browser open pages whose certificate no authority has signed.
func (b *Browser) AcceptAnyCertificate() {
	b.t.Helper()
	b.do("Security.setIgnoreCertificateErrors", map[string]any{"ignore": true}, nil)
}

// Eval runs a script in the page, awaits its promise, and reads its value into T.
func Eval[T any](b *Browser, script string) T {
	b.t.Helper()
	var got struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	b.do("Runtime.evaluate", map[string]any{"expression": script, "awaitPromise": true, "returnByValue": true}, &got)
	if got.Exception != nil {
		b.t.Fatalf("%s: %s %s", script, got.Exception.Text, got.Exception.Exception.Description)
	}
	var v T
	if len(got.Result.Value) > 0 {
		if err := json.Unmarshal(got.Result.Value, &v); err != nil {
			b.t.Fatalf("%s: %v in %s", script, err, got.Result.Value)
		}
	}
	return v
}

// Until waits until a condition of the page is true.
func (b *Browser) Until(condition string) {
	b.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	for !Eval[bool](b, `Boolean(`+condition+`)`) {
		select {
		case <-tick.C:
		case <-late.C:
			b.t.Fatalf("it never became true: %s\nthe page: %s\ncomplaints: %q", condition, Eval[string](b, `document.body.innerText`), b.Complaints())
		}
	}
}

// Size makes the window so large; mobile makes it a phone.
func (b *Browser) Size(width, height int, mobile bool) {
	b.t.Helper()
	scale := 1
	if mobile {
		scale = 2
	}
	b.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": scale, "mobile": mobile}, nil)
}

// Dark sets what the system prefers.
func (b *Browser) Dark(dark bool) {
	b.t.Helper()
	value := "light"
	if dark {
		value = "dark"
	}
	b.do("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]string{"name": "prefers-color-scheme", "value": value}}}, nil)
}

// Key presses a key, such as Tab or Enter.
func (b *Browser) Key(key string, code int) {
	b.t.Helper()
	press := map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": code}
	if key == "Enter" {
		press["text"] = "\r"
	}
	b.do("Input.dispatchKeyEvent", press, nil)
	b.do("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": code}, nil)
}

// Type types a text where the focus is.
func (b *Browser) Type(text string) {
	b.t.Helper()
	b.do("Input.insertText", map[string]any{"text": text}, nil)
}

// Screenshot writes what the window shows, or the whole page, into a file: png or webp.
func (b *Browser) Screenshot(path, format string, whole bool) {
	b.t.Helper()
	params := map[string]any{"format": format, "captureBeyondViewport": whole}
	if format == "webp" {
		params["quality"] = 82
	}
	if whole {
		var size struct {
			Content struct {
				Width, Height float64
			} `json:"cssContentSize"`
		}
		b.do("Page.getLayoutMetrics", nil, &size)
		params["clip"] = map[string]any{"x": 0, "y": 0, "width": size.Content.Width, "height": size.Content.Height, "scale": 1}
	}
	var shot struct {
		Data string `json:"data"`
	}
	b.do("Page.captureScreenshot", params, &shot)
	raw, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(path, raw, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// Header sends a header with every request of the page.
func (b *Browser) Header(name, value string) {
	b.t.Helper()
	b.do("Network.setExtraHTTPHeaders", map[string]any{"headers": map[string]string{name: value}}, nil)
}

// Offline takes the page's connection away, or gives it back.
func (b *Browser) Offline(offline bool) {
	b.t.Helper()
	b.do("Network.emulateNetworkConditions", map[string]any{"offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}, nil)
}

// Before runs a script in every page that is opened from now on, before the page's own.
func (b *Browser) Before(script string) {
	b.t.Helper()
	b.do("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": script}, nil)
}

// Metrics are Chromium's own numbers of the page: times in seconds, sizes in bytes.
func (b *Browser) Metrics() map[string]float64 {
	b.t.Helper()
	b.do("Performance.enable", nil, nil)
	var got struct {
		Metrics []struct {
			Name  string
			Value float64
		}
	}
	b.do("Performance.getMetrics", nil, &got)
	all := make(map[string]float64, len(got.Metrics))
	for _, m := range got.Metrics {
		all[m.Name] = m.Value
	}
	return all
}
