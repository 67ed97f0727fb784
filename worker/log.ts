import pino from 'pino'

/**
 * Creates the log of this process, which it names `process`: one JSON object per line, on standard output.
 */
export function createLog(process: string, level: string): pino.Logger {
  return pino({ level, base: { process }, timestamp: pino.stdTimeFunctions.isoTime })
}
