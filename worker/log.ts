import pino from 'pino'

/** The process's log: one JSON object a line, on standard output. */
export function createLog(process: string, level: string): pino.Logger {
  return pino({ level, base: { process }, timestamp: pino.stdTimeFunctions.isoTime })
}
