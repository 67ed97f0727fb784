import { parseArgs } from 'node:util'
import { Fault } from '../db/fault.ts'
import { type CommandArguments, UsageError } from './commands/arguments.ts'
import { type Config, ConfigError, readConfig } from './config.ts'

const USAGE = `Usage: npx perdure <command>

People, teams and tokens (on the database of DATABASE_URL, or of the \`npm start\` running on DATA_DIR):

  user add <email>             Create an account, even if SIGNUP is closed.
      --first-name <name>      default: the part of the e-mail address before the @
      --last-name <name>
      --team <teamId>          Add the account to this team, with this role:
      --role <role>            ADMIN, BUILDER or OPERATOR
      --instance-admin         Make the account an administrator of the whole installation.
      --password-stdin         Read the password from standard input; else one is generated and shown once.
  user confirm <email>         Confirm an e-mail address that its user has, or wants to change to.
      --user <userId>          the account that is meant, if several want the address
  user passwd <email>          Set a new password, and end all sessions of the account.
      --password-stdin         as above
  team list                    List all teams: id, plan, number of members, name.
  team plan <teamId> <plan>    Set a team's plan: FREE, TEAM, BUSINESS or ENTERPRISE.
  token create [<teamId>]      Create an SDK token and print it. Without a teamId it is for the oldest team.
      --name <name>            default: cli
      --role <role>            ADMIN, BUILDER (default), OPERATOR or VIEWER
      --user <email>           whose token it is; default: the first ADMIN of the team
      --expires <time>         ISO 8601, such as 2027-01-31T12:00:00Z; without it the token never expires
  audit verify [<teamId>]      Check the audit log of one team, or of all. Exits with 1 if an entry is broken.
      --checkpoint <seq>:<hash>  With a teamId: also check that this entry, which an earlier audit verify
                               printed, is still the same.
      --file <path>            Check an export instead, without the database and the service; - is standard input.
      --key <path>             With --file: the public keys (PEM) that you have noted. Without it, those of the
                               export are taken, and printed.
  audit export [<teamId>]      Write all entries with their proofs to standard output: of a team, also of one that is
                               deleted; without a teamId those of the instance, such as sign-ins.
  audit erase <teamId>         Erase what is personal about a person's entries: name, IP address, user agent and
      --user <userId>          details. An entry names them, and the audit log stays intact.
  audit reopen <teamId>        Record acts again after a team's audit log was tampered with. The new segment
                               begins with what was found, and audit verify names it for ever.
      --note <text>            Why, for the entry.
      --checkpoint <seq>:<hash>  as above

Versions of the workers (DEPLOYMENT_BUILD_ID; on the Temporal of TEMPORAL_ADDRESS):

  deployment show              List the versions that Temporal knows: which one gets new executions, and how many
                               executions are open on each.
  deployment set-current <buildId>  Give new executions to the workers of this version. Those under way stay on theirs.
      --unversioned            Without a buildId: give them to workers that have no version.

The installation:

  exposure open                Open in all processes what a request through a proxy has closed (sign-up, and loopback
                               for workflows), and keep it open. What settings close stays closed.
  exposure close               Take that back: the next request through a proxy closes, and one that has come did.
  keys show                    List the keys that seal (PERDURE_KEYS): which one is current, and what each is needed for.
  keys rotate                  Wrap every credential with the current key anew. The service may run meanwhile; what was
                               interrupted goes on where it stopped.
  migrate                      Bring the database of DATABASE_URL up to date, and create the first admin.
  secrets move                 Move secrets that are written into stored graphs into credentials. Run it once no
                               process of a release before credentials is left; it may be repeated.
  rebuild <executionId|--all>  Rebuild the rows of one execution, or of all, from their histories in Temporal.
  schema                       Write db/schema.ts and db/functions.sql from the migrations.
      --check                  Change nothing; exit with 1 if a file is not up to date.

Exit codes: 0 done, 1 refused or failed, 2 wrong command line or environment.`

const stringOption = { type: 'string' } as const
const flagOption = { type: 'boolean' } as const

type Command = {
  /** The least and the greatest number of arguments that are not options. */
  words: [number, number]
  options?: Record<string, typeof stringOption | typeof flagOption>
  run: (config: Config, args: CommandArguments) => Promise<void>
}

// Each command is imported only when it runs, because most of them do not need Temporal's SDK.
const COMMANDS: Record<string, Command> = {
  'user add': {
    words: [1, 1],
    options: {
      'first-name': stringOption,
      'last-name': stringOption,
      team: stringOption,
      role: stringOption,
      'instance-admin': flagOption,
      'password-stdin': flagOption,
    },
    run: async (...all) => (await import('./commands/users.ts')).runUserAdd(...all),
  },
  'user confirm': {
    words: [1, 1],
    options: { user: stringOption },
    run: async (...all) => (await import('./commands/users.ts')).runUserConfirm(...all),
  },
  'user passwd': {
    words: [1, 1],
    options: { 'password-stdin': flagOption },
    run: async (...all) => (await import('./commands/users.ts')).runUserPasswd(...all),
  },
  'team list': {
    words: [0, 0],
    run: async (config) => (await import('./commands/teams.ts')).runTeamList(config),
  },
  'team plan': {
    words: [2, 2],
    run: async (...all) => (await import('./commands/teams.ts')).runTeamPlan(...all),
  },
  'token create': {
    words: [0, 1],
    options: { name: stringOption, role: stringOption, user: stringOption, expires: stringOption },
    run: async (...all) => (await import('./commands/tokens.ts')).runTokenCreate(...all),
  },
  'audit verify': {
    words: [0, 1],
    options: { checkpoint: stringOption, file: stringOption, key: stringOption },
    run: async (config, args) => {
      if (args.options.file !== undefined)
        return (await import('./commands/auditfile.ts')).runAuditVerifyFile(args)
      if (args.options.key !== undefined) throw new UsageError('--key needs a --file')
      await (await import('./commands/audit.ts')).runAuditVerify(config, args)
    },
  },
  'audit export': {
    words: [0, 1],
    run: async (...all) => (await import('./commands/audit.ts')).runAuditExport(...all),
  },
  'audit erase': {
    words: [1, 1],
    options: { user: stringOption },
    run: async (...all) => (await import('./commands/audit.ts')).runAuditErase(...all),
  },
  'audit reopen': {
    words: [1, 1],
    options: { note: stringOption, checkpoint: stringOption },
    run: async (...all) => (await import('./commands/audit.ts')).runAuditReopen(...all),
  },
  'deployment show': {
    words: [0, 0],
    run: async (config) => (await import('./commands/deployment.ts')).runDeploymentShow(config),
  },
  'deployment set-current': {
    words: [0, 1],
    options: { unversioned: flagOption },
    run: async (...all) => (await import('./commands/deployment.ts')).runSetCurrent(...all),
  },
  'exposure open': {
    words: [0, 0],
    run: async (config) => (await import('./commands/exposure.ts')).runExposureOpen(config),
  },
  'exposure close': {
    words: [0, 0],
    run: async (config) => (await import('./commands/exposure.ts')).runExposureClose(config),
  },
  'keys show': {
    words: [0, 0],
    run: async (config) => (await import('./commands/keys.ts')).runKeysShow(config),
  },
  'keys rotate': {
    words: [0, 0],
    run: async (config) => (await import('./commands/keys.ts')).runKeysRotate(config),
  },
  migrate: {
    words: [0, 0],
    run: async (config) => (await import('./commands/migrate.ts')).runMigrate(config),
  },
  'secrets move': {
    words: [0, 0],
    run: async (config) => (await import('./commands/secrets.ts')).runSecretsMove(config),
  },
  rebuild: {
    words: [0, 1],
    options: { all: flagOption },
    run: async (config, { words: [id], options: { all } }) => {
      if ((id === undefined) === (all === undefined))
        throw new UsageError('rebuild takes either an execution id or --all')
      await (await import('./commands/rebuild.ts')).runRebuild(config, id ?? '--all')
    },
  },
  schema: {
    words: [0, 0],
    options: { check: flagOption },
    run: async (config, { options }) =>
      (await import('./commands/schema.ts')).runSchema(config, options.check === true),
  },
}

try {
  await run(process.argv.slice(2))
} catch (error) {
  const { code, message } = error as Error & { code?: unknown }
  if (error instanceof UsageError) console.error(`perdure: ${message} (npx perdure help lists all commands)`)
  else if (error instanceof Fault || error instanceof ConfigError) console.error(`perdure: ${message}`)
  else if (code === '42P01' || code === '42703')
    console.error('perdure: the database is not up to date: run `npx perdure migrate` or `npm start`')
  else if (code === 'ECONNREFUSED') console.error(`perdure: the database cannot be reached: ${message}`)
  else throw error
  process.exitCode = error instanceof UsageError || error instanceof ConfigError ? 2 : 1
}

async function run(args: string[]): Promise<void> {
  if (args.length === 0 || args[0] === 'help' || args.includes('--help') || args[0] === '-h') {
    console.log(USAGE)
    return
  }
  const name = [args.slice(0, 2).join(' '), args[0]!].find((known) => Object.hasOwn(COMMANDS, known))
  if (!name) throw new UsageError(describeUnknown(args[0]!))
  const { words: wanted, options = {}, run: carryOut } = COMMANDS[name]!
  const given = parse(args.slice(name.split(' ').length), options)
  const [least, most] = wanted
  const { length } = given.words
  if (length < least || length > most) {
    const range = least === 0 ? `at most ${most}` : `${least} to ${most}`
    const expected = least === most ? `${most}` : range
    throw new UsageError(`${name} takes ${expected} ${most === 1 ? 'argument' : 'arguments'}, not ${length}`)
  }
  await carryOut(readConfig(process.env), given)
}

// Only the first word is named: a second one may be a password or a token.
function describeUnknown(word: string): string {
  const known = Object.keys(COMMANDS).map((name) => name.split(' '))
  const second = known.filter(([first, next]) => first === word && next).map(([, next]) => next)
  return second.length > 0
    ? `"${word}" must be followed by ${second.join(' or ')}`
    : `there is no command "${word}"`
}

function parse(args: string[], options: NonNullable<Command['options']>): CommandArguments {
  try {
    const { positionals, values } = parseArgs({ args, options, allowPositionals: true })
    return { words: positionals, options: values }
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}
