// Package learn reads recordings of a purchase, as browsers export them (HAR 1.2), and infers
// from them the configuration of a gate: which request places an order, which values name its
// items and its buyer, what the shop's answer means. Each line that it writes names the recorded
// request on which it rests; what no recording shows becomes a question. Values of persons and
// credentials are compared, and never written.
package learn
