// Makes vectors.json with the libraries that the providers publish: requests that they sign,
// changes of them, and whether the libraries accept each. Run: npm ci && node generate.mjs
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import Stripe from "stripe";
import { Webhook } from "standardwebhooks";
import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { WebhooksHelper } from "square";
import { Paddle } from "@paddle/paddle-node-sdk";
import { validateWebhookSignature } from "razorpay/dist/utils/razorpay-utils.js";
import { verifySignature } from "gocardless-nodejs/webhooks";

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

// Square, Paddle, Razorpay and GoCardless: their libraries only verify, so that the signatures are made here.
const mac = (key, text, encoding) => createHmac("sha256", key).update(text).digest(encoding);
const acceptsLater = async (check) => {
  try {
    return (await check()) !== false;
  } catch {
    return false;
  }
};
const addLater = async (scheme, name, key, headers, body, check, more = {}) =>
  cases.push({ name: scheme + ": " + name, scheme, key, ...more, headers, body, accepted: await acceptsLater(check) });
const flip = (s) => (s[0] === "0" ? "1" : "0") + s.slice(1);

const squareURL = "https://shop.example.com/webhooks/square";
const squareKey = "asdf1234-a-signature-key";
const squareBody = JSON.stringify({ type: "payment.updated", data: { object: { payment: { reference_id: "SO-1", status: "COMPLETED", note: "größer" } } } });
const addSquare = async (name, { key = squareKey, url = squareURL, signBody = squareBody, change = (s) => s } = {}) => {
  const signature = change(mac(squareKey, url + signBody, "base64"));
  await addLater("square", name, key, { "x-square-hmacsha256-signature": signature }, squareBody,
    () => WebhooksHelper.verifySignature({ requestBody: squareBody, signatureHeader: signature, signatureKey: key, notificationUrl: squareURL }), { url: squareURL });
};
await addSquare("signed");
await addSquare("another body", { signBody: squareBody + " " });
await addSquare("another URL", { url: squareURL + "/" });
await addSquare("another key", { key: "another-signature-key" });
await addSquare("without the URL", { url: "" });
await addSquare("another signature", { change: flip });

const paddleKey = "pdl_ntfset_01gkpjp8bkm3tm53kdgkx6sms7_a-secret";
const paddleBody = JSON.stringify({ event_type: "transaction.completed", data: { custom_data: { order: "SO-1" }, note: "雪" } });
const paddle = new Paddle("key");
const addPaddle = async (name, { key = paddleKey, at = now, signBody = paddleBody, change = (s) => s } = {}) => {
  const header = change("ts=" + at + ";h1=" + mac(paddleKey, at + ":" + signBody, "hex"));
  await addLater("paddle", name, key, { "Paddle-Signature": header }, paddleBody, () => paddle.webhooks.isSignatureValid(paddleBody, key, header));
};
await addPaddle("signed");
await addPaddle("five seconds old", { at: now - 5 });
await addPaddle("an hour old", { at: now - 3600 });
await addPaddle("another body", { signBody: paddleBody + " " });
await addPaddle("another key", { key: "pdl_ntfset_another" });
await addPaddle("another time", { change: (s) => s.replace("ts=" + now, "ts=" + (now + 1)) });
await addPaddle("no time", { change: (s) => s.replace(/^ts=\d+;/, "") });
await addPaddle("no signature", { change: (s) => s.replace(/;h1=.*/, "") });
await addPaddle("another scheme", { change: (s) => s.replace("h1=", "h2=") });
await addPaddle("the signature first", { change: (s) => s.split(";").reverse().join(";") });

const plainBody = JSON.stringify({ event: "payment.captured", events: [{ id: "EV1", resource_metadata: { order: "SO-1" }, note: "größer" }] });
const addPlain = async (scheme, header, check) => {
  const key = "a secret of " + scheme;
  const add = (name, signature, by = key) => addLater(scheme, name, by, { [header]: signature }, plainBody, () => check(plainBody, signature, by));
  await add("signed", mac(key, plainBody, "hex"));
  await add("another body", mac(key, plainBody + " ", "hex"));
  await add("another key", mac(key, plainBody, "hex"), "another secret");
  await add("another signature", flip(mac(key, plainBody, "hex")));
  await add("in base64", mac(key, plainBody, "base64"));
  await add("empty", "");
};
await addPlain("razorpay", "X-Razorpay-Signature", validateWebhookSignature);
await addPlain("gocardless", "Webhook-Signature", (body, signature, key) => verifySignature(body, key, signature));

// Descriptions of one's own, signed by Node.
const signedBody = JSON.stringify({ event: "paid", order: "SO-1", note: "größer" });
const pairs = {
  "rsa-sha256": generateKeyPairSync("rsa", { modulusLength: 2048 }), "rsa-sha512": generateKeyPairSync("rsa", { modulusLength: 2048 }),
  "ecdsa-sha256": generateKeyPairSync("ec", { namedCurve: "P-256" }), "ed25519": generateKeyPairSync("ed25519"),
};
const hmacKey = "a secret of some length";
for (const algorithm of ["hmac-sha1", "hmac-sha256", "hmac-sha512", ...Object.keys(pairs)]) {
  for (const encoding of ["hex", "base64", "base64url"]) {
    const hash = algorithm.split("-")[1];
    const pair = pairs[algorithm];
    const text = now + "\nPOST-/hook?a=b\n" + signedBody;
    const signature = (pair ? sign(hash ?? null, Buffer.from(text), pair.privateKey) : createHmac(hash, hmacKey).update(text).digest()).toString(encoding);
    const description = { algorithm, over: "{header.X-Time}{newline}POST-{uri}{newline}{body}", signature: "{field.sig}", encoding, time: "{header.X-Time}",
      fields: { header: "X-Signature", between: ", ", after: ":" } };
    const key = pair ? pair.publicKey.export({ type: "spki", format: "pem" }) : hmacKey;
    for (const [name, body, accepted] of [["signed", signedBody, true], ["another body", signedBody + " ", false]]) {
      cases.push({ name: `signed: ${algorithm} in ${encoding}, ${name}`, scheme: "signed", key, description, uri: "/hook?a=b",
        headers: { "X-Time": String(now), "X-Signature": "kid:1, sig:" + signature }, body, accepted });
    }
  }
}

const versions = JSON.parse(readFileSync(new URL("package.json", import.meta.url))).devDependencies;
writeFileSync(new URL("vectors.json", import.meta.url), JSON.stringify({ versions, now, cases }, null, 1) + "\n");
console.log(cases.map((c) => (c.accepted ? "accepted " : "refused  ") + c.name).join("\n"));
