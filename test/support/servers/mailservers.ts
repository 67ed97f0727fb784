import { type ChildProcess, spawn } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findFree } from '../../../worker/local/ports.ts'
import { DOVECOT, EXIM } from '../programs.ts'
import { CERT, KEY } from './certificate.ts'

/** Who may sign in at both. */
export const MAIL_USER = { username: 'ada', password: 'correct-horse-41' }

/** Exim refuses recipients named `refused` for good and `later` for now, and anybody who has not signed in. */
const eximConfig = (dir: string, ports: { plain: number; tls: number }) => `
exim_user = Debian-exim
exim_group = Debian-exim
spool_directory = ${dir}/spool
log_file_path = ${dir}/log/%s
pid_file_path = ${dir}/exim.pid
primary_hostname = perdure.test
daemon_smtp_ports = ${ports.plain} : ${ports.tls}
tls_on_connect_ports = ${ports.tls}
local_interfaces = 127.0.0.1
tls_advertise_hosts = *
tls_certificate = ${dir}/cert.pem
tls_privatekey = ${dir}/key.pem
message_size_limit = 30M
deliver_drop_privilege = true
never_users =
keep_environment =
host_lookup =
rfc1413_hosts =
acl_smtp_rcpt = check_rcpt
acl_smtp_data = accept
begin acl
check_rcpt:
  deny local_parts = refused
       message = no such mailbox
  defer local_parts = later
       message = come again
  accept authenticated = *
  deny message = sign in first
begin routers
all:
  driver = accept
  transport = store
begin transports
store:
  driver = appendfile
  directory = ${dir}/mail
  maildir_format
  user = Debian-exim
  group = Debian-exim
  envelope_to_add
  batch_max = 100
begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_condition = \${if and{{eq{$auth2}{${MAIL_USER.username}}}{eq{$auth3}{${MAIL_USER.password}}}}}
  server_set_id = $auth2
`

const dovecotConfig = (dir: string, ports: { plain: number; tls: number }) => `
protocols = imap
base_dir = ${dir}/run
state_dir = ${dir}/state
log_path = ${dir}/log/main
listen = 127.0.0.1
ssl = yes
ssl_cert = <${dir}/cert.pem
ssl_key = <${dir}/key.pem
disable_plaintext_auth = no
mail_location = maildir:${dir}/mail/%u
first_valid_uid = 1
passdb {
  driver = static
  args = user=${MAIL_USER.username} password=${MAIL_USER.password}
}
userdb {
  driver = static
  args = uid=dovecot gid=dovecot home=${dir}/mail/%u
}
service imap-login {
  inet_listener imap {
    port = ${ports.plain}
  }
  inet_listener imaps {
    port = ${ports.tls}
  }
}
`

/** Starts Exim on loopback; `mails` are those that it has delivered, as they lie in the mailbox. */
export async function startExim() {
  const server = await startServer('exim', eximConfig, (config) => [EXIM, '-C', config, '-bdf', '-q1h'])
  const folder = join(server.dir, 'mail', 'new')
  return {
    ...server,
    mails: () =>
      existsSync(folder) ? readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8')) : [],
  }
}

/** Starts Dovecot on loopback, for IMAP. */
export async function startDovecot() {
  return startServer('dovecot', dovecotConfig, (config) => [DOVECOT, '-F', '-c', config])
}

async function startServer(
  name: string,
  configure: (dir: string, ports: { plain: number; tls: number }) => string,
  command: (config: string) => string[],
) {
  const dir = mkdtempSync(join(tmpdir(), `perdure-${name}-`))
  const ports = { plain: await findFree(), tls: await findFree() }
  const owner = readOwner(name === 'exim' ? 'Debian-exim' : 'dovecot')
  chmodSync(dir, 0o755)
  for (const folder of ['spool', 'log', 'mail', 'run', 'state']) {
    mkdirSync(join(dir, folder))
    if (folder !== 'run') chownSync(join(dir, folder), owner.uid, owner.gid)
  }
  writeFileSync(join(dir, 'cert.pem'), CERT)
  writeFileSync(join(dir, 'key.pem'), KEY)
  chownSync(join(dir, 'key.pem'), owner.uid, owner.gid)
  chmodSync(join(dir, 'key.pem'), 0o600)
  const config = join(dir, `${name}.conf`)
  writeFileSync(config, configure(dir, ports))
  const [program = '', ...args] = command(config)
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let errors = ''
  child.stderr.on('data', (part) => {
    errors += part
  })
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  for (const port of Object.values(ports)) await untilOpen(port, child, () => errors)
  return {
    dir,
    ports,
    async stop() {
      child.kill('SIGTERM')
      await ended
      rmSync(dir, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

function readOwner(name: string): { uid: number; gid: number } {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((one) => one.startsWith(`${name}:`))
  const [, , uid, gid] = line?.split(':') ?? []
  return { uid: Number(uid ?? 0), gid: Number(gid ?? 0) }
}

async function untilOpen(port: number, child: ChildProcess, errors: () => string): Promise<void> {
  for (const giveUp = Date.now() + 20_000; ; await sleep(25)) {
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1')
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
      socket.once('connect', () => socket.destroy())
    })
    if (isOpen) return
    if (child.exitCode !== null || Date.now() > giveUp)
      throw new Error(`${child.spawnfile} did not start: ${errors()}`)
  }
}
