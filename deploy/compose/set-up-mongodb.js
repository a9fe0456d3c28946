// mongosh runs this on the first member once it responds. Existing configuration is kept.
// The first user can only be created from this machine, while there is none.
const { readFileSync } = require("node:fs");

const members = process.env.MEMBERS.split(",");
const secret = (name) => readFileSync(`/secrets/setup/${name}`, "utf8");
const admin = db.getSiblingDB("admin");
const asAdmin = () => admin.auth("admin", secret("admin-password"));

function isInitiated() {
  return db.hello().setName !== undefined;
}

/** Prefers the first member as primary: this script is connected to it. */
function initiate() {
  rs.initiate({
    _id: "rs0",
    members: members.map((host, _id) => ({ _id, host, priority: _id === 0 ? 2 : 1 })),
  });
}

function waitUntilPrimary() {
  while (!db.hello().isWritablePrimary) {
    sleep(500);
  }
}

function hasAdmin() {
  try {
    return asAdmin().ok === 1;
  } catch (error) {
    if (error.codeName === "AuthenticationFailed") {
      return false;
    }
    throw error;
  }
}

function createAdmin() {
  admin.createUser({ user: "admin", pwd: secret("admin-password"), roles: ["root"] });
  asAdmin();
}

/** The service creates its own collections and indexes. Access to its own database only. */
function createServiceUser() {
  const latchkey = db.getSiblingDB("latchkey");
  if (latchkey.getUser("latchkey") === null) {
    const roles = ["readWrite", "dbAdmin"];
    latchkey.createUser({ user: "latchkey", pwd: secret("service-password"), roles });
  }
}

if (!isInitiated()) {
  initiate();
}
waitUntilPrimary();
if (!hasAdmin()) {
  createAdmin();
}
createServiceUser();
print(`The replica set of ${members.length} and the user of the service are ready.`);
