package child

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/loop"
	"github.com/stockgate/stockgate/internal/store/shard"
)

// DefaultMemory is the maxmemory of a server, in bytes, unless Options.Memory is set.
const DefaultMemory = 1 << 30

const (
	// startsWithin bounds how long Open waits for a server that has much to read: the edge waits on.
	startsWithin = 10 * time.Second
	// endsWithin bounds how long a server may take to end before it is killed.
	endsWithin = 30 * time.Second
	// askEvery is the pause between two looks at a server that starts or ends.
	askEvery = 20 * time.Millisecond
	// steady is how long a server runs until its earlier ends do not count any more.
	steady = time.Minute
	// lookEvery is the default of Options.LookEvery.
	lookEvery = 5 * time.Second
	// longestPause is between the end of a server that ends again and again and its next start.
	longestPause = 10 * time.Second
)

// Options say which server runs in which directory.
type Options struct {
	// Dir is the absolute path of the directory. It is made if it does not exist.
	Dir string
	// Program is the redis-server or valkey-server to run: a path, or a name in PATH. Default: either of them in
	// PATH.
	Program string
	// Memory is the server's maxmemory in bytes. Default: [DefaultMemory].
	Memory int64
	// LookEvery is how often the server is asked how it is. Default: 5s.
	LookEvery time.Duration
	// Accepted is called where an operator lets the store go on without what its disk has lost, before anything else
	// reaches the server: what was sold since looks available. at is when that was seen first. It may come again.
	// Default: nothing is done.
	Accepted func(ctx context.Context, o shard.Options, at time.Time) error
	Log      *zap.Logger
}

// Server is the redis-server of a directory, which is started again when it ends. Its methods are safe
// for concurrent use.
type Server struct {
	dir      string
	program  program
	password string
	lock     *os.File
	keeper   *shard.Client // may end the server and set its memory
	log      *zap.Logger
	stop     context.CancelFunc
	ended    chan struct{}
	begun    chan struct{} // closed once the first process answers, or has ended
	begin    func()
	answered chan struct{} // a process has begun to answer
	looking  sync.WaitGroup
	accepted func(ctx context.Context, o shard.Options, at time.Time) error
	pausing  atomic.Bool // no edge is let in
	ran      bool        // a process has answered; of the goroutine that runs them

	mu       sync.Mutex
	memory   int64
	pid      int // 0: none runs
	restarts int
	why      string // the last one ended; empty: none has
	cut      int64  // bytes that servers have cut off when they read the file
	watched  watched
	first    error // with which the first process has ended, if it did before begun

	saving sync.Mutex // while a backup is made
}

// Open takes the directory and starts its server. An error says why that can never work as it is; a server
// that ends is logged, and started again. Open waits until the server answers, and not longer than ten seconds. Close
// must be called.
func Open(o Options) (*Server, error) {
	p, err := find(o.Program)
	if err != nil {
		return nil, err
	}
	if err := prepare(o.Dir); err != nil {
		return nil, err
	}
	lock, err := claim(o.Dir)
	if err != nil {
		return nil, err
	}
	if err := isWhole(o.Dir); err != nil {
		lock.Close()
		return nil, err
	}
	return start(o, p, lock)
}

// start starts the server of a directory that is claimed. It gives up the lock if it fails.
func start(o Options, p program, lock *os.File) (*Server, error) {
	o.Memory, o.LookEvery = cmp.Or(o.Memory, DefaultMemory), cmp.Or(o.LookEvery, lookEvery)
	s := &Server{
		dir: o.Dir, program: p, lock: lock, log: o.Log.With(zap.String("store", o.Dir)), memory: o.Memory, accepted: o.Accepted,
		ended: make(chan struct{}), begun: make(chan struct{}), answered: make(chan struct{}, 1),
	}
	if s.accepted == nil {
		s.accepted = func(context.Context, shard.Options, time.Time) error { return nil }
	}
	s.begin = sync.OnceFunc(func() { close(s.begun) })
	if err := s.ready(); err != nil {
		lock.Close()
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go s.run(ctx)
	s.looking.Go(func() { s.watch(ctx, o.LookEvery) })
	late := time.NewTimer(startsWithin)
	defer late.Stop()
	select {
	case <-s.begun:
	case <-late.C:
		s.log.Warn("the redis-server of the store does not answer yet: attempts are unavailable until it does")
	}
	return s, nil
}

// Await returns when the server has read its files and answers. An error says why the first process has ended instead.
func (s *Server) Await(ctx context.Context) error {
	select {
	case <-s.begun:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}

// ready prepares what the server needs, and no earlier server has changed.
func (s *Server) ready() error {
	if err := s.program.reads(s.dir); err != nil {
		return err
	}
	var err error
	if s.password, err = password(s.dir); err != nil {
		return err
	}
	if changed, err := changedByHand(s.dir); err != nil {
		return err
	} else if changed {
		s.log.Warn("redis.conf in the store was changed by hand: it is written again at each start, so the change is lost; options of `store` in the Caddyfile stay",
			zap.String("file", filepath.Join(s.dir, configFile)))
	}
	o := shard.Options{Timeout: endsWithin}
	s.connect(&o, keeperUser)
	s.keeper, err = shard.Open(o)
	return err
}

// Address stands for the address of a directory's server, which has no network: the name of its sales' Redis.
func Address(dir string) string {
	return net.JoinHostPort(strings.ReplaceAll(dir, "@", "%40"), "6379") // @ would begin a host
}

// Connect leads options to the server.
func (s *Server) Connect(o *shard.Options) {
	s.connect(o, edgeUser)
	dial := o.Dialer
	o.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		if s.pausing.Load() {
			return nil, errPausing
		}
		return dial(ctx, network, address)
	}
}

func (s *Server) connect(o *shard.Options, user string) {
	socket := filepath.Join(s.dir, socketFile)
	o.Addresses = []string{Address(s.dir)} // no name is looked up: the dialer knows the socket
	o.Username, o.Password = user, s.password
	o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
}

// Change sets the server's maxmemory, now and at its next starts. It returns an error where the running one
// cannot take it, such as because it has more in memory.
func (s *Server) Change(memory int64) error {
	if memory == 0 {
		memory = DefaultMemory
	}
	s.mu.Lock()
	same := s.memory == memory
	s.memory = memory
	s.mu.Unlock()
	if same {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), startsWithin)
	defer cancel()
	if err := s.keeper.SetMaxMemory(ctx, memory); err != nil {
		return fmt.Errorf("store: its memory cannot be changed to %d bytes: %w", memory, err)
	}
	return nil
}

// end ends the server.
func (s *Server) end() {
	s.stop()
	<-s.ended
	s.looking.Wait()
}

// Close ends the server, after everything that uses it, and gives up the directory.
func (s *Server) Close() error {
	s.end()
	err := s.keeper.Close()
	if e := s.lock.Close(); err == nil {
		err = e
	}
	return err
}

// run keeps a server running until ctx ends.
func (s *Server) run(ctx context.Context) {
	defer close(s.ended)
	defer s.begin()
	dieWithThread()
	for pause := time.Duration(0); ; {
		began := time.Now()
		err := s.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) >= steady {
			pause = 0
		}
		s.mu.Lock()
		if s.restarts == 0 {
			s.first = err
		}
		s.restarts++
		s.why = err.Error()
		s.mu.Unlock()
		s.log.Error("the redis-server of the store has ended: attempts are unavailable until it runs again", zap.Error(err), zap.Duration("starts_in", pause))
		s.begin()
		if !loop.Rest(ctx, pause, nil) {
			return
		}
		pause = min(max(2*pause, 100*time.Millisecond), longestPause)
	}
}
