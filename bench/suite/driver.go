package suite

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strconv"
)

// driver is `bench drive` or `bench connect` in a process of its own, pinned to the core of the
// load. It prints a line when all is set up, begins when it reads one, prints its result, and
// ends when its input does.
type driver struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer
}

func startDriver(ctx context.Context, b *bench, command string, p any) (*driver, error) {
	plan, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	d := &driver{cmd: exec.CommandContext(ctx, "taskset", "-c", strconv.Itoa(b.Load), b.Self, command, string(plan))}
	d.cmd.Stderr = &d.stderr
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	d.out = bufio.NewReader(out)
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := d.out.ReadBytes('\n'); err != nil {
		return nil, d.failed(err)
	}
	return d, nil
}

// measure lets the driver begin, and reads its result.
func (d *driver) measure(result any) error {
	line, err := d.proceed()
	if err != nil {
		return err
	}
	return json.Unmarshal(line, result)
}

// proceed lets the driver go on, and returns the line that it prints next.
func (d *driver) proceed() ([]byte, error) {
	if _, err := io.WriteString(d.in, "go\n"); err != nil {
		return nil, d.failed(err)
	}
	line, err := d.out.ReadBytes('\n')
	if err != nil {
		return nil, d.failed(err)
	}
	return line, nil
}

// end lets the driver go.
func (d *driver) end() error {
	if err := d.in.Close(); err != nil {
		return err
	}
	if err := d.cmd.Wait(); err != nil {
		return fmt.Errorf("the driver: %w: %s", err, d.stderr.Bytes())
	}
	return nil
}

func (d *driver) failed(err error) error {
	_ = d.in.Close()
	if wait := d.cmd.Wait(); wait != nil {
		err = wait
	}
	return fmt.Errorf("the driver: %w: %s", err, bytes.TrimSpace(d.stderr.Bytes()))
}
