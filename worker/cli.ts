import { parseArgs } from 'node:util'
import { Fault } from '../db/fault.ts'
import { type Config, ConfigError, readConfig } from './config.ts'
import { type Given, UsageError } from './operator.ts'

const USAGE = `usage: npx perdure <command>

On the database of DATABASE_URL, or of the npm start that runs on DATA_DIR:
  user add <email> [--first-name <name>] [--last-name <name>] [--team <teamId> --role <role>] [--instance-admin]
  user passwd <email>          gives a new password and ends all sessions
                               both: --password-stdin reads it; else one is made up and shown once
  team list                    every team: id, plan, members, name
  team plan <teamId> <plan>    FREE, TEAM, BUSINESS or ENTERPRISE
  token create <teamId> --name <name> --role <role> [--user <email>] [--expires <ISO time>]
                               an SDK token of the user, else of the team's first ADMIN; prints it alone
  audit verify [<teamId>] [--checkpoint <seq>:<hash>]
                               every hash and link of one chain or all; exit code 1 where one is broken

For the installation:
  migrate                      bring the database of DATABASE_URL up to date, make the first admin
  rebuild <executionId|--all>  write executions anew from Temporal's histories
  schema [--check]             write db/schema.ts from the migrations, or compare it with them`

const text = { type: 'string' } as const
const flag = { type: 'boolean' } as const

type Command = {
  /** How many words it takes, at least and at most. */
  words: [number, number]
  options?: Record<string, typeof text | typeof flag>
  run: (config: Config, given: Given) => Promise<void>
}

// Loaded when it is run: an operator's command has no use for Temporal.
const COMMANDS: Record<string, Command> = {
  'user add': {
    words: [1, 1],
    options: {
      'first-name': text,
      'last-name': text,
      team: text,
      role: text,
      'instance-admin': flag,
      'password-stdin': flag,
    },
    run: async (...all) => (await import('./users.ts')).addUser(...all),
  },
  'user passwd': {
    words: [1, 1],
    options: { 'password-stdin': flag },
    run: async (...all) => (await import('./users.ts')).replacePassword(...all),
  },
  'team list': { words: [0, 0], run: async (config) => (await import('./teams.ts')).printTeams(config) },
  'team plan': { words: [2, 2], run: async (...all) => (await import('./teams.ts')).setPlan(...all) },
  'token create': {
    words: [1, 1],
    options: { name: text, role: text, user: text, expires: text },
    run: async (...all) => (await import('./tokens.ts')).makeToken(...all),
  },
  'audit verify': {
    words: [0, 1],
    options: { checkpoint: text },
    run: async (...all) => (await import('./audit.ts')).verifyChains(...all),
  },
  migrate: { words: [0, 0], run: async (config) => (await import('./schema.ts')).runMigrate(config) },
  rebuild: {
    words: [0, 1],
    options: { all: flag },
    run: async (config, { words: [id], options: { all } }) => {
      if ((id === undefined) === (all === undefined)) throw new UsageError('rebuild one execution, or --all')
      await (await import('./rebuild.ts')).runRebuild(config, id ?? '--all')
    },
  },
  schema: {
    words: [0, 0],
    options: { check: flag },
    run: async (config, { options }) =>
      (await import('./schema.ts')).runSchema(config, options.check === true),
  },
}

try {
  await run(process.argv.slice(2))
} catch (error) {
  const { code, message } = error as Error & { code?: unknown }
  if (error instanceof UsageError) console.error(`perdure: ${message}\n\n${USAGE}`)
  else if (error instanceof Fault || error instanceof ConfigError) console.error(`perdure: ${message}`)
  else if (code === '42P01' || code === '42703')
    console.error('perdure: the database is not up to date: run `npx perdure migrate`, or `npm start`')
  else if (code === 'ECONNREFUSED') console.error(`perdure: the database does not answer: ${message}`)
  else throw error
  process.exitCode = error instanceof UsageError || error instanceof ConfigError ? 2 : 1
}

async function run(args: string[]): Promise<void> {
  if (args.length === 0 || args[0] === 'help' || args.includes('--help')) {
    console.log(USAGE)
    return
  }
  const name = [args.slice(0, 2).join(' '), args[0]!].find((known) => Object.hasOwn(COMMANDS, known))
  if (!name) throw new UsageError(`there is no command ${args[0]}`)
  const { words: wanted, options = {}, run: carryOut } = COMMANDS[name]!
  const given = parse(args.slice(name.split(' ').length), options)
  const { length } = given.words
  if (length < wanted[0] || length > wanted[1])
    throw new UsageError(`${name} is not given ${length === 0 ? 'nothing' : `${length} words`}`)
  await carryOut(readConfig(process.env), given)
}

function parse(args: string[], options: NonNullable<Command['options']>): Given {
  try {
    const { positionals, values } = parseArgs({ args, options, allowPositionals: true })
    return { words: positionals, options: values }
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}
