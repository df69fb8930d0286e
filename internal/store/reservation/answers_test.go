package reservation_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stockgate/stockgate/internal/store/reservation"
	"github.com/stockgate/stockgate/internal/test/redistest"
	"github.com/stockgate/stockgate/internal/test/stocktest"
)

// The shop's answer is kept for a retry: the first one, as it was, for its time.
func TestStoredAnswers(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		s := stocktest.OpenStore(t, stocktest.Options(b))
		if a, err := s.StoredAnswer(stocktest.Soon(t), "s", "r1"); a != nil || err != nil {
			t.Errorf("before, it is %v, %v", a, err)
		}
		first := &reservation.StoredAnswer{Status: 201, ContentType: "application/json", Location: "/orders/1", Body: []byte("{\"a\":\"\x00\xff\"}")}
		for _, a := range []*reservation.StoredAnswer{first, {Status: 500}} {
			if err := s.StoreAnswer(stocktest.Soon(t), "s", "r1", a, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.StoreAnswer(stocktest.Soon(t), "s", "r2", &reservation.StoredAnswer{Status: 204}, time.Hour); err != nil {
			t.Fatal(err)
		}
		if a, err := s.StoredAnswer(stocktest.Soon(t), "s", "r1"); err != nil || !reflect.DeepEqual(a, first) {
			t.Errorf("it is %+v, %v", a, err)
		}
		if a, err := s.StoredAnswer(stocktest.Soon(t), "s", "r2"); err != nil || a.Status != 204 || a.Body != nil {
			t.Errorf("the other is %+v, %v", a, err)
		}
		for _, other := range []string{"t", "s.r1"} {
			if a, err := s.StoredAnswer(stocktest.Soon(t), other, "r1"); a != nil || err != nil {
				t.Errorf("in sale %s it is %v, %v", other, a, err)
			}
		}
		key := "stockgate:{s.0}:answer:r1"
		if ttl := b.Client().TTL(stocktest.Soon(t), key).Val(); ttl <= 0 || ttl > time.Hour {
			t.Errorf("%s lives for %v", key, ttl)
		}
	})
}

// Answers cannot fill Redis.
func TestAnswersAreBounded(t *testing.T) {
	redistest.Each(t, func(t *testing.T, b redistest.Backend) {
		s := stocktest.OpenStore(t, stocktest.Options(b))
		full := &reservation.StoredAnswer{Status: 200, Body: bytes.Repeat([]byte("x"), reservation.MaxAnswer)}
		if err := s.StoreAnswer(stocktest.Soon(t), "s", "r1", full, time.Hour); err != nil {
			t.Errorf("the largest: %v", err)
		}
		larger := &reservation.StoredAnswer{Status: 200, Body: append(full.Body, 'x')}
		if err := s.StoreAnswer(stocktest.Soon(t), "s", "r2", larger, time.Hour); !errors.Is(err, reservation.ErrAnswerTooLarge) {
			t.Errorf("a larger: %v", err)
		}
		const counter = "stockgate:{s.0}:answers"
		if err := b.Client().Set(stocktest.Soon(t), counter, reservation.MaxAnswers-100, 0).Err(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := s.StoreAnswer(stocktest.Soon(t), "s", "r3", full, time.Hour); !errors.Is(err, reservation.ErrAnswerTooLarge) {
				t.Errorf("beyond the bound of the sale: %v", err)
			}
		}
		if err := s.StoreAnswer(stocktest.Soon(t), "s", "r4", &reservation.StoredAnswer{Status: 204}, time.Hour); err != nil {
			t.Errorf("a small one: %v", err)
		}
		for _, id := range []string{"r2", "r3"} {
			if a, err := s.StoredAnswer(stocktest.Soon(t), "s", id); a != nil || err != nil {
				t.Errorf("%s is stored: %v, %v", id, a, err)
			}
		}
		if err := b.Client().Set(stocktest.Soon(t), "stockgate:{s.0}:answer:r5", "damaged", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.StoredAnswer(stocktest.Soon(t), "s", "r5"); err == nil || !strings.Contains(err.Error(), "r5") {
			t.Errorf("a damaged one is %v", err)
		}
	})
}
