package adminapi

import "fmt"

// The levels of findings.
const (
	LevelOK      = "ok"
	LevelWarning = "warning" // the edge sells, and an operator should look at something
	LevelError   = "error"   // a promise is broken, or will be
)

// Finding is the result of one check.
type Finding struct {
	Level string `json:"level"`
	// Check names what was examined, in one word.
	Check string `json:"check"`
	// Text says in one sentence what the check found, and what to do about it.
	Text string `json:"text"`
}

// Diagnosis answers GET doctor.
type Diagnosis struct {
	Findings []Finding `json:"findings"`
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`
}

// Add adds a finding and counts it.
func (d *Diagnosis) Add(level, check, format string, args ...any) {
	d.Findings = append(d.Findings, Finding{level, check, fmt.Sprintf(format, args...)})
	switch level {
	case LevelError:
		d.Errors++
	case LevelWarning:
		d.Warnings++
	}
}
