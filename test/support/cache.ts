import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The folder in which `npm start` keeps a downloaded Temporal CLI; the tests share it. */
export const CACHE = fileURLToPath(new URL('../../.perdure/cache', import.meta.url))

/** For the environment of Perdure's programs: they keep what they compile, and the next one starts in half the time. */
export const COMPILED = { NODE_COMPILE_CACHE: join(CACHE, 'compiled') }
