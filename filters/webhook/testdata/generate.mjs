// Makes vectors.json with the libraries that the providers publish: requests that they sign,
// changes of them, and whether the libraries accept each. Run: npm ci && node generate.mjs
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import Stripe from "stripe";
import { Webhook } from "standardwebhooks";

const require = createRequire(import.meta.url);
const adyen = require("@adyen/api-library");
const HmacValidator = adyen.hmacValidator ?? adyen.HmacValidator;

const now = 1_790_000_000; // seconds; the libraries are asked as if it were this time
Date.now = () => now * 1000;
const RealDate = Date;
globalThis.Date = class extends RealDate {
  constructor(...args) {
    super(...(args.length ? args : [now * 1000]));
  }
};

const cases = [];
const accepts = (check) => {
  try {
    return check() !== false;
  } catch {
    return false;
  }
};

// Stripe
const stripe = new Stripe("sk_test_1");
const stripeSecret = "whsec_4f8b1c0d9e2a7365c4b1";
const stripeBody = JSON.stringify({ id: "evt_1", type: "checkout.session.completed", data: { object: { client_reference_id: "SO-1", payment_status: "paid", name: "雪 ❄ \\u00e9" } } }, null, 2);
const stripeHeader = (body, secret, timestamp) => stripe.webhooks.generateTestHeaderString({ payload: body, secret, timestamp });
const signed = stripeHeader(stripeBody, stripeSecret, now);
const addStripe = (name, header, body, secret = stripeSecret) =>
  cases.push({ name: "stripe: " + name, scheme: "stripe", key: secret, headers: { "Stripe-Signature": header }, body,
    accepted: accepts(() => stripe.webhooks.constructEvent(body, header, secret, 300, undefined, now * 1000)) });
addStripe("signed", signed, stripeBody);
addStripe("five minutes old", stripeHeader(stripeBody, stripeSecret, now - 300), stripeBody);
addStripe("older", stripeHeader(stripeBody, stripeSecret, now - 301), stripeBody);
addStripe("another body", signed, stripeBody + " ");
addStripe("another secret", signed, stripeBody, "whsec_another_secret");
addStripe("a second signature fits", signed.replace(",v1=", ",v1=" + "0".repeat(64) + ",v1="), stripeBody);
addStripe("an old scheme only", signed.replace(",v1=", ",v0="), stripeBody);
addStripe("another time", signed.replace("t=" + now, "t=" + (now + 1)), stripeBody);
addStripe("no time", signed.replace(/^t=\d+,/, ""), stripeBody);

// Standard Webhooks
const standardSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const standardBody = JSON.stringify({ type: "payment.succeeded", data: { order: "SO-1", note: "größer" } });
const addStandard = (name, body, { id = "msg_1", at = now, signBody = body, secret = standardSecret, change = (s) => s } = {}) => {
  const headers = {
    "webhook-id": id, "webhook-timestamp": String(at),
    "webhook-signature": change(new Webhook(standardSecret).sign("msg_1", new RealDate(at * 1000), signBody)),
  };
  cases.push({ name: "standard: " + name, scheme: "standard", key: secret, headers, body,
    accepted: accepts(() => { new Webhook(secret).verify(body, headers); return true; }) });
};
addStandard("signed", standardBody);
addStandard("without the prefix", standardBody, { secret: standardSecret.slice(6) });
addStandard("five minutes old", standardBody, { at: now - 300 });
addStandard("older", standardBody, { at: now - 301 });
addStandard("five minutes ahead", standardBody, { at: now + 300 });
addStandard("further ahead", standardBody, { at: now + 301 });
addStandard("another body", standardBody + " ", { signBody: standardBody });
addStandard("another id", standardBody, { id: "msg_2" });
addStandard("another secret", standardBody, { secret: "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD" });
addStandard("several signatures", standardBody, { change: (s) => "v1,bm9uc2Vuc2Ugbm9uc2Vuc2Ugbm9uc2Vuc2Ugbm9uc2U= v2,xyz " + s });
addStandard("another version", standardBody, { change: (s) => s.replace("v1,", "v2,") });

// Adyen
const adyenKey = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056";
const validator = new HmacValidator();
const item = (over = {}) => ({
  additionalData: {}, amount: { currency: "EUR", value: 1130 }, pspReference: "7914073381342284", eventCode: "AUTHORISATION",
  eventDate: "2026-05-06T17:15:34+02:00", merchantAccountCode: "TestMerchant", operations: ["CANCEL"], merchantReference: "TestPayment-1407325143704",
  paymentMethod: "visa", success: "true", ...over,
});
const addAdyen = (name, list, { change = (i) => i, key = adyenKey } = {}) => {
  for (const i of list) i.additionalData.hmacSignature = validator.calculateHmac(i, adyenKey);
  const changed = list.map(change);
  cases.push({ name: "adyen: " + name, scheme: "adyen", key, headers: {},
    body: JSON.stringify({ live: "false", notificationItems: changed.map((i) => ({ NotificationRequestItem: i })) }),
    accepted: accepts(() => changed.every((i) => validator.validateHMAC(i, key))) });
};
addAdyen("signed", [item()]);
addAdyen("refused payment", [item({ success: "false" })]);
addAdyen("with an original reference", [item({ originalReference: "7914073381342283", eventCode: "CANCELLATION" })]);
addAdyen("a reference with backslash and colon", [item({ merchantReference: "SO\\1:2" })]);
addAdyen("letters beyond ASCII", [item({ merchantReference: "bestelling-é雪" })]);
addAdyen("two items", [item(), item({ merchantReference: "second" })]);
addAdyen("two items, one changed", [item(), item({ merchantReference: "second" })], { change: (i) => i.merchantReference === "second" ? { ...i, merchantReference: "third" } : i });
addAdyen("another amount", [item()], { change: (i) => ({ ...i, amount: { ...i.amount, value: 1 } }) });
addAdyen("a failure turned into success", [item({ success: "false" })], { change: (i) => ({ ...i, success: "true" }) });
addAdyen("an unsigned field changed", [item()], { change: (i) => ({ ...i, paymentMethod: "mc" }) });
addAdyen("another key", [item()], { key: "DFB1EB5485895CFA84146406857104ABB4CBCABDC8AAF103A624C8F6A3EAAB00" });
addAdyen("zero", [item({ amount: { currency: "EUR", value: 0 } })]);

const versions = JSON.parse(readFileSync(new URL("package.json", import.meta.url))).devDependencies;
writeFileSync(new URL("vectors.json", import.meta.url), JSON.stringify({ versions, now, cases }, null, 1) + "\n");
console.log(cases.map((c) => (c.accepted ? "accepted " : "refused  ") + c.name).join("\n"));
