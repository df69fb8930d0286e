package meter

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// notifyMetrics are the series of what operators are told.
type notifyMetrics struct {
	sent, lost      prometheus.Counter
	answers         *prometheus.CounterVec
	waiting, oldest prometheus.Gauge
}

func newNotifyMetrics() notifyMetrics {
	m := notifyMetrics{
		sent: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stockgate_notices_sent_total", Help: "Notices that the receiver has taken from this edge.",
		}),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stockgate_notices_lost_total", Help: "Notices that found no room, or that the receiver could not read.",
		}),
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stockgate_notify_answers_total", Help: "Answers of the receiver: 2xx, 3xx, 4xx, 5xx or none.",
		}, []string{"answer"}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "stockgate_notices_waiting", Help: "Notices that wait for the receiver, told by the edge that sends them.",
		}),
		oldest: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "stockgate_notices_oldest_seconds", Help: "How long the oldest notice has waited, told by the edge that sends them.",
		}),
	}
	for _, answer := range answerClasses {
		m.answers.WithLabelValues(answer)
	}
	return m
}

func (m *notifyMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.sent, m.lost, m.answers, m.waiting, m.oldest}
}

// NoticeEvents counts what operators are told.
type NoticeEvents struct{}

func (NoticeEvents) NoticePosted(answer string) { All().notify.answers.WithLabelValues(answer).Inc() }

func (NoticeEvents) NoticesSent(n int) { All().notify.sent.Add(float64(n)) }

func (NoticeEvents) NoticesLost(n int64) { All().notify.lost.Add(float64(n)) }

func (NoticeEvents) NoticesWait(n int64, oldest time.Duration) {
	All().notify.waiting.Set(float64(n))
	All().notify.oldest.Set(oldest.Seconds())
}
