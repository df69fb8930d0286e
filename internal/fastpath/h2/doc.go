// Package h2 shares connections that speak HTTP/2 between the fast path and the HTTP/2 server
// of net/http (golang.org/x/net/http2).
//
// A [Conn] lies between that server and the client. It answers the requests that a
// [fastpath.Judge] answers, and passes on everything else, so that the server does not notice:
//
//   - The client's header blocks are decoded here, in their order, with the server's own decoder.
//     Blocks that go on are encoded again without the dynamic table. So the server's decoder
//     knows nothing of the blocks that were answered here. An error is caused again at the
//     server, which answers it.
//   - Answers of the fast path do not use the table of the client's decoder, so that it remains
//     that of the server's encoder.
//   - Stream ids stay as they are. A request that goes on takes all older ones that wait along,
//     because ids must rise. The server's GOAWAY names the highest stream that was answered.
//   - DATA of the fast path spends only credit that was withheld from the client's WINDOW_UPDATE
//     frames. The server gets it back when it runs out of its own.
//
// Nothing here waits for a client that a server of x/net would not wait for, and what a client
// can make grow is bounded. See limits.go.
package h2
