import { existsSync } from 'node:fs'

const isRoot = process.getuid?.() === 0

/** Where programs of others lie that some tests need, as Debian's packages install them. */
export const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium'
export const MARIADBD = process.env.MARIADBD ?? '/usr/sbin/mariadbd'
export const EXIM = '/usr/sbin/exim4'
export const DOVECOT = '/usr/sbin/dovecot'
export const RSYSLOG = '/usr/sbin/rsyslogd'
export const LOGNORM = '/usr/bin/lognormalizer'

/** What is tested with such programs, and what to install if they are missing. */
const PROGRAMS = {
  browser: {
    tests: 'the console and the chats of widgets',
    install: 'chromium, or set CHROMIUM to a browser',
    isThere: existsSync(CHROMIUM),
  },
  mailServers: {
    tests: 'mails sent to and read from real servers',
    install: 'exim4-daemon-light and dovecot-imapd, and be root',
    isThere: existsSync(EXIM) && existsSync(DOVECOT) && isRoot,
  },
  mariadb: {
    tests: 'queries to MariaDB',
    install: 'mariadb-server-core, or set MARIADBD to a server',
    isThere: existsSync(MARIADBD),
  },
  parsers: {
    tests: "audit events read by a SIEM's parsers",
    install: 'rsyslog and liblognorm-utils',
    isThere: existsSync(RSYSLOG) && existsSync(LOGNORM),
  },
}

/** Whether tests with these programs are skipped because they are missing. With CI set they fail instead. */
export function lacks(name: keyof typeof PROGRAMS): boolean {
  return !PROGRAMS[name].isThere && !process.env.CI
}

/** A line for each kind of test that is skipped: which, and what to install. */
export function describeSkipped(): string[] {
  const names = Object.keys(PROGRAMS) as (keyof typeof PROGRAMS)[]
  return names
    .filter(lacks)
    .map((name) => `Skipped: ${PROGRAMS[name].tests}. To test it, install ${PROGRAMS[name].install}.`)
}
