package child

import (
	"regexp"
	"strconv"

	"go.uber.org/zap"
)

// cutLine is what a server says before it cuts the end of its file, which has no whole record.
var cutLine = regexp.MustCompile(`Truncating the AOF .* at offset (\d+)`)

func cutAt(line string) (offset int64, ok bool) {
	found := cutLine.FindStringSubmatch(line)
	if found == nil {
		return 0, false
	}
	offset, err := strconv.ParseInt(found[1], 10, 64)
	return offset, err == nil
}

// wasCut says that the server has cut the file at an offset. No byte that is known to be on the disk is among the rest, or
// the server would not have been started.
func (s *Server) wasCut(before increment, at int64) {
	bytes := before.size - at
	s.mu.Lock()
	s.cut += bytes
	s.mu.Unlock()
	s.log.Warn("the end of the append-only file was no whole record, and is cut off: after a crash it is a write to which no answer was given. If nothing has crashed, the disk has lost bytes: compare the sales with the shop",
		zap.String("file", before.name), zap.Int64("bytes", bytes))
}
