import { openDatabase } from '../../db/connection.ts'
import { migrate } from '../../db/migrate.ts'
import { type Config, ConfigError } from '../config.ts'
import { demandSealKeys, readKeys } from '../keys.ts'
import { seedAdmin } from '../local/seed.ts'

/** `migrate`: brings the database of DATABASE_URL up to date and creates the first admin. */
export async function runMigrate(config: Config): Promise<void> {
  if (!config.databaseUrl)
    throw new ConfigError('DATABASE_URL must be set (`npm start` migrates its own database by itself)')
  const keys = readKeys(config, false)
  const { db, close } = openDatabase(config.databaseUrl, { max: 2, name: 'perdure migrate' })
  try {
    const ran = await migrate(db)
    await demandSealKeys({ db, keys })
    console.log(ran.length === 0 ? 'The database is up to date' : `Ran ${ran.join(', ')}`)
    const made = await seedAdmin({ db, keys }, config)
    if (made) {
      const password = made.madeUp ? `${made.password} (shown only once)` : 'the value of ADMIN_PASSWORD'
      console.log(`Created the first admin: ${made.email}, password: ${password}`)
    }
  } finally {
    await close()
  }
}
