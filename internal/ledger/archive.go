package ledger

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/stockgate/stockgate/internal/store/journal"
)

// archiveFor bounds the transaction that archives a sale: it changes every row of it.
const archiveFor = 10 * time.Minute

// ArchiveMark is in the name of an archived sale, and in no sale's id.
const ArchiveMark = "@"

// archivedAs is the name of a sale whose last epoch was this one.
func archivedAs(sale string, epoch int64) string { return fmt.Sprint(sale, ArchiveMark, epoch) }

// ArchivedEpoch is the last epoch of an archived sale, by its name; 0: it is no such name.
func ArchivedEpoch(name string) int64 {
	_, epoch, _ := strings.Cut(name, ArchiveMark)
	n, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// archive gives what the ledger has of a sale another name, if the sale was deleted on purpose
// since, and loaded again as this epoch. False: it was not deleted, so Redis has lost it.
func (s *following) archive(ctx context.Context, epoch int64) (bool, error) {
	call, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	deleted, err := s.journals.DeletedEpoch(call, s.sale)
	if err != nil {
		return false, s.failed("journal", err)
	}
	if !journal.Replaced(s.at.Epoch, deleted, epoch) {
		return false, nil
	}
	as := archivedAs(s.sale, s.at.Epoch)
	write, cancel := context.WithTimeout(ctx, archiveFor)
	defer cancel()
	if err := s.ledger.Archive(write, s.sale, s.owner, s.at, as); err != nil {
		return false, s.failed("ledger", fmt.Errorf("the ledger cannot archive the sale that was deleted: %w", err))
	}
	s.log.Info("the sale was deleted and is loaded again: what the ledger had of it has another name", zap.String("sale", s.sale), zap.String("archived", as))
	s.lost() // read the position again: it is the beginning
	return true, nil
}
