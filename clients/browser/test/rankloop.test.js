// The client in Node, against a server that does what each test says. `npm run build` first.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { statSync } from "node:fs";
import { after, test } from "node:test";

import { Rankloop, RankloopError } from "../dist/rankloop.js";

const servers = [];
after(() => servers.forEach((server) => server.close()));

/** A service whose n-th answer is `answers[n]`: a status, or a function of the request; the last one goes on. */
async function service(...answers) {
  const asked = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (part) => (body += part));
    request.on("end", () => {
      const one = { url: request.url, headers: request.headers, body: JSON.parse(body) };
      asked.push(one);
      const answer = answers[Math.min(asked.length, answers.length) - 1];
      if (answer === "cut") return request.socket.destroy();
      const [status, told] = typeof answer === "function" ? answer(one) : [answer, {}];
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(told));
    });
  });
  servers.push(server);
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  return { asked, url: `http://127.0.0.1:${server.address().port}` };
}

const taken = ({ body }) => [200, { errors: false, items: body.map(() => ({ index: { status: 201 } })) }];
const quick = { ranker: "shop", delay: 1, retries: 3 };
const ids = (requests) => requests.flatMap(({ body }) => body.map((event) => event.event_id));

test("it is small", () => {
  assert.ok(statSync(new URL("../dist/rankloop.js", import.meta.url)).size < 5_000);
});

test("a list that is asked for again is the same list", async () => {
  const { asked, url } = await service("cut", 503, ({ body }) => [200, { ...body, items: ["a"] }]);
  const list = await new Rankloop(`${url}/`, { ...quick, key: "rl_1" }).rank({ items: ["a", "b"], query: "tea" });
  assert.equal(asked.length, 3);
  assert.equal(new Set(asked.map(({ body }) => body.decision_id)).size, 1);
  assert.equal(list.decision_id, asked[0].body.decision_id);
  assert.deepEqual(asked[0].body.items, ["a", "b"]);
  assert.equal(asked[0].url, "/v1/rankers/shop/rank");
  assert.equal(asked[0].headers.authorization, "Bearer rl_1");
});

test("a refusal is told and not tried again", async () => {
  const { asked, url } = await service(() => [403, { error: { code: "forbidden", message: "this needs the role writer" } }]);
  const refused = (error) => error instanceof RankloopError && error.status === 403 && error.code === "forbidden";
  await assert.rejects(new Rankloop(url, quick).rank(), refused);
  assert.equal(asked.length, 1);
});

test("events are gathered, and keep their ids when they are sent again", async () => {
  const { asked, url } = await service("cut", 429, taken);
  const client = new Rankloop(url, { ...quick, key: "rl_e" });
  const list = { decision_id: "d1", items: ["a", "b"], propensities: null };
  client.shown(list);
  client.click(list, "b");
  client.click("d0", "z");
  await client.flush();
  assert.equal(asked.length, 3);
  assert.deepEqual(asked[0].body, asked[2].body);
  assert.equal(asked[0].url, "/v1/ubi/events?ranker=shop&key=rl_e");
  assert.equal(asked[0].headers["content-type"], "text/plain");
  assert.equal(asked[0].headers.authorization, undefined);
  const events = asked[2].body.map((one) => [
    one.action_name,
    one.query_id,
    one.event_attributes.object.object_id,
    one.event_attributes.position.ordinal,
  ]);
  assert.deepEqual(events, [
    ["impression", "d1", "a", 0],
    ["impression", "d1", "b", 1],
    ["click", "d1", "b", 1],
    ["click", "d0", "z", undefined],
  ]);
  assert.equal(new Set(ids([asked[0]])).size, 4);
  await client.close();
});

test("they are sent by themselves after a moment", async () => {
  const { asked, url } = await service(taken);
  const client = new Rankloop(url, quick);
  client.track({ action_name: "share", query_id: "d1", message: "x" });
  await new Promise((done) => setTimeout(done, 200));
  assert.equal(asked.length, 1);
  assert.equal(asked[0].body[0].message, "x");
});

test("what is refused is lost and told, what is busy is sent again", async () => {
  const status = [200, 422, 429];
  const { asked, url } = await service(
    ({ body }) => [200, { errors: true, items: body.map((_, i) => ({ index: { status: status[i] } })) }],
    taken,
  );
  const lost = [];
  const client = new Rankloop(url, { ...quick, onLost: (reason, events) => lost.push(...events.map((one) => one.query_id)) });
  for (const id of ["fine", "wrong", "busy"]) client.click(id, "a");
  await client.flush();
  assert.deepEqual(lost, ["wrong"]);
  assert.deepEqual(asked[1].body.map((one) => one.query_id), ["busy"]);
  assert.equal(asked[0].body[2].event_id, asked[1].body[0].event_id);
});

test("what cannot be sent is lost and told in the end", async () => {
  const { asked, url } = await service("cut");
  const lost = [];
  const client = new Rankloop(url, { ...quick, retries: 1, onLost: (reason, events) => lost.push(...events) });
  client.click("d1", "a");
  await client.flush();
  assert.equal(asked.length, 2);
  assert.equal(lost.length, 1);
});

test("requests stay below 60 kB and 1,000 events, and nothing is lost or doubled", async () => {
  const { asked, url } = await service(taken);
  const client = new Rankloop(url, quick);
  for (let i = 0; i < 2_500; i++) client.click(`d${i}`, "é".repeat(i % 200));
  await client.flush();
  assert.ok(asked.length > 10);
  for (const { body } of asked) {
    assert.ok(new Blob([JSON.stringify(body)]).size < 60_100);
    assert.ok(body.length <= 1_000);
  }
  assert.equal(new Set(ids(asked)).size, 2_500);
  assert.equal(ids(asked).length, 2_500);
});
