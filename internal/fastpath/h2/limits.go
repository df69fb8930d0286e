package h2

// Bounds on what a client can cause. Everything that goes on is bounded by the server besides.
//
//   - Rapid reset (CVE-2023-44487): a request that is answered here has no handler; one that waits
//     for its body and is reset is forgotten. Neither leaves anything behind.
//   - CONTINUATION flood (CVE-2023-45288) and HPACK bombs (CVE-2016-1544): blocks are read by x/net's
//     Framer with the server's MAX_HEADER_LIST_SIZE. maxContinuations bounds empty frames, too.
//   - SETTINGS and PING floods (CVE-2019-9512, CVE-2019-9515): these frames go to the server, which
//     bounds the answers that it queues. Nothing is queued here.
//   - Empty frames (CVE-2019-9518): maxFrames bounds those of a body that is awaited.
//   - Tiny windows (CVE-2019-9511, CVE-2019-9517): an answer that does not fit into the client's
//     windows is not given here, so none waits for a window.
//   - A client that does not read: the answers fill its socket, and then nothing more is read from
//     it. Writing is bounded by the server's timeout.
const (
	// maxBody bounds the body of a request that is answered here.
	maxBody = 16 << 10
	// maxHeld bounds the bytes of all requests of a connection that wait, their heads included.
	maxHeld = 128 << 10
	// maxFrames bounds the DATA frames of one body.
	maxFrames = 32
	// maxContinuations bounds the frames of one header block.
	maxContinuations = 1000
	// maxWaiting bounds the answers that wait for the end of a frame of the server.
	maxWaiting = 64 << 10
	// maxOut is how many bytes of answers are written together.
	maxOut = 15 << 10
	// maxPass is how many bytes for the server are prepared at once.
	maxPass = 32 << 10
	// maxKept is how many bytes of a buffer are kept for the next request.
	maxKept = 4 << 10

	// maxFrameSize is the least that all peers accept (RFC 9113, section 4.2).
	maxFrameSize = 16 << 10
	// defaultWindow is the window of new connections and streams (RFC 9113, section 6.9.2).
	defaultWindow = 65535
	maxWindow     = 1<<31 - 1
	// defaultTable is the size of a new connection's tables (RFC 9113, section 6.5.2).
	defaultTable = 4096

	// minAnswer is the length of the body for which there must be room before a request is judged,
	// until a longer one was sent: what was judged was counted.
	minAnswer = 1 << 10
	// minRefund is the least that is given back at once, as x/net does it.
	minRefund = 4 << 10
	// ampleCredit is how much connection credit the server keeps before any of it is withheld for
	// answers that were not yet needed; scarceCredit is the same where they were.
	ampleCredit  = 1 << 20
	scarceCredit = 32 << 10
	// lowCredit is what makes the server get all credit back.
	lowCredit = 16 << 10
)
