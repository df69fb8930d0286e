// Orders for k6 at an arrival rate that grows, which is an open loop: k6 begins an order when it
// is due. rehearse.sh runs it, and judges what came of it.
import http from 'k6/http';
import exec from 'k6/execution';

export const options = {
  maxRedirects: 0,
  scenarios: {
    rush: {
      executor: 'ramping-arrival-rate',
      startRate: 10,
      timeUnit: '1s',
      preAllocatedVUs: 200,
      maxVUs: 2000,
      stages: [
        { target: 500, duration: '10s' },
        { target: 500, duration: '20s' },
      ],
    },
  },
  thresholds: { http_req_duration: ['p(99)<300'] },
};

export default function () {
  // New in each run: the sale knows the buyers of earlier ones.
  const buyer = `k6-${__ENV.RUN}-${exec.scenario.iterationInTest}`;
  const order = { sku: __ENV.SKU, quantity: 1 };
  const answer = http.post(__ENV.URL, JSON.stringify(order), {
    headers: { 'Content-Type': 'application/json', 'X-User-Id': buyer },
  });
  if (answer.status >= 200 && answer.status < 300) {
    // One line for each success: rehearse.sh gives them to the verdict.
    console.log(JSON.stringify({
      status: answer.status, buyer, reservation: answer.headers['Stockgate-Reservation'] || '',
    }));
  }
}
